"""The modules between ``adaexplore run`` and the first model call."""

from __future__ import annotations

import sys
from pathlib import Path
from types import FrameType

import pytest

from adaexplore.cli.main import main
from adaexplore.llm.protocol import ModelRequest
from tests.stub_model import StubModel

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"
PATH = [
    "adaexplore.cli.main",
    "adaexplore.cli.run",
    "adaexplore.run.batch",
    "adaexplore.run.session",
    "adaexplore.run.solve",
    "adaexplore.run.in_flight",
    "adaexplore.run.step",
    "adaexplore.agent.agent",
    "adaexplore.llm.meter",
]


def modules_of(frame: FrameType | None) -> set[str]:
    """Return the modules of this project on a thread's stack."""
    found = set()
    while frame is not None:
        found.add(str(frame.f_globals.get("__name__")))
        frame = frame.f_back
    return {name for name in found if name.startswith("adaexplore.")}


def test_nine_modules_lead_to_the_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stacks: list[set[str]] = []

    def answer(_: ModelRequest) -> None:
        stacks.append(set().union(*map(modules_of, sys._current_frames().values())))

    monkeypatch.setattr("adaexplore.run.build.build_client", lambda *_, **__: StubModel(answer))
    settings = ["dummy=true", "num_processes=1", "total_steps=1", f"save_path={tmp_path / 'run'}"]
    given = [text for setting in settings for text in ("--set", setting)]
    assert main(["run", "--task", str(PROBLEM), *given]) in (0, 1)
    assert sorted(stacks[0]) == sorted(PATH)
