"""Directions from the search to the prompt, the record and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from adaexplore.cli.main import main
from adaexplore.core.step import StepRecord
from adaexplore.prompts.directions import direction_text
from adaexplore.records.run_records import RunRecords

ROOT = Path(__file__).parents[2]


def run(folder: Path, **settings: object) -> list[StepRecord]:
    chosen = {
        "preset": "default",
        "dummy": True,
        "server_type": "offline",
        "problem_root": ROOT / "datasets/quickstart",
        "total_steps": 8,
        "save_path": folder,
    }
    overrides = [text for key, value in (chosen | settings).items() for text in ("--set", f"{key}={value}")]
    assert main(["run", *overrides]) == 0
    return RunRecords(folder).task("1_1").steps()[1:]


def asked(step: StepRecord) -> str:
    return step.draft.exchanges[0].prompt


def test_eight_parallel_steps_have_eight_directions(tmp_path: Path) -> None:
    steps = run(tmp_path / "run", parallel_steps=8)
    assert len({step.node.plan.direction for step in steps}) == len(steps)
    assert len({asked(step) for step in steps}) == len(steps)
    assert all(asked(step).endswith(direction_text(step.node.plan.direction)) for step in steps)


def test_a_replay_gives_the_same_directions(tmp_path: Path) -> None:
    steps = run(tmp_path / "run")
    assert any(step.node.plan.direction for step in steps)
    assert main(["replay", str(tmp_path / "run"), "--out", str(tmp_path / "again")]) == 0
    again = RunRecords(tmp_path / "again").task("1_1").steps()[1:]
    assert [step.node.plan for step in again] == [step.node.plan for step in steps]


@pytest.mark.parametrize("settings", [{"preset": "paper"}, {"directions": False}])
def test_without_directions_prompts_have_none(tmp_path: Path, settings: dict[str, object]) -> None:
    steps = run(tmp_path / "run", parallel_steps=4, total_steps=4, **settings)
    assert {step.node.plan.direction for step in steps} == {""}
    assert len({asked(step) for step in steps}) == 1
