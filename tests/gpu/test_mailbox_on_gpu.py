"""A mailbox run on a real GPU, killed and started again, whose times differ from start to start.

Figures are printed, and written to ``mailbox_on_gpu.json`` in the folder that the variable ``OUT`` names.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.mailbox_scenario import MailboxRun, kill_four_times

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

SETTINGS = ("judge_device=cuda", "total_steps=4")
SIZE = {"rows": 8192, "columns": 4096}


def report(name: str, figures: dict[str, Any]) -> None:
    print(json.dumps({name: figures}))  # noqa: T201
    if "OUT" in os.environ:
        path = Path(os.environ["OUT"], "mailbox_on_gpu.json")
        known = json.loads(path.read_text()) if path.exists() else {}
        path.write_text(json.dumps(known | {name: figures}, indent=1) + "\n")


def profile_of_reference(run: MailboxRun) -> dict[str, Any]:
    facts = json.loads((run.folder / run.key / "reference_facts.json").read_text())
    found: dict[str, Any] = facts["profile"]
    return found


def test_killed_run_uses_every_answer(cuda: None, tmp_path: Path) -> None:
    begun = time.monotonic()
    run = MailboxRun(tmp_path / "run", *SETTINGS, **SIZE)
    kill_four_times(run)
    figures = run.figures() | {"seconds": round(time.monotonic() - begun, 1)}
    report("killed_four_times", figures)
    assert figures["asked_twice"] == 0, run.log.read_text()
    assert figures["answers_used"] == figures["answers"] == figures["prompts"]
    assert (figures["starts"], figures["kills"], figures["steps"]) == (5, 4, 4)


def test_new_times_of_the_reference_keep_an_answer(cuda: None, tmp_path: Path) -> None:
    begun = time.monotonic()
    run = MailboxRun(tmp_path / "run", *SETTINGS, **SIZE)
    run.killed_when(lambda: bool(run.waiting()))
    before = profile_of_reference(run)
    (run.folder / run.key / "reference_facts.json").unlink()
    run.answer()
    run.killed_when(lambda: run.steps() == 1)
    now = profile_of_reference(run)
    times = {"gpu_us": (before["gpu_us"], now["gpu_us"]), "wall_us": (before["wall_us"], now["wall_us"])}
    report("measured_again", {**run.figures(), **times, "seconds": round(time.monotonic() - begun, 1)})
    assert before != now
    assert [key for key in run.prompts() if ".1." in key] == [f"{run.key}.1.large"], run.log.read_text()
    assert run.used()[0] == run.answers()[0]
