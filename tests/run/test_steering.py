"""A run follows requests from another terminal."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from adaexplore.core.errors import Interrupted
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.records.recorded import recorded_steering
from adaexplore.records.run_records import RunRecords
from adaexplore.records.steering import Action, Steered, Steering
from adaexplore.run.batch import run_batch
from adaexplore.run.solve import solve
from tests.run.parts import STEPS, TASK, contents, run_all, solver


def steps(run: Path, steering: Steering, **parts: object) -> Iterator[StepRecord]:
    steered = replace(solver(run / "task", **parts), steering=steering)
    return solve(steered, threading.Event())


@pytest.mark.parametrize("parallel_steps", [1, 3])
def test_stop_ends_after_the_steps_in_flight(tmp_path: Path, parallel_steps: int) -> None:
    made = steps(tmp_path, Steering(tmp_path), parallel_steps=parallel_steps)
    seen = list(islice(made, 2))
    Steering(tmp_path).add(Action.STOP)
    with pytest.raises(Interrupted, match="steer"):
        seen.extend(made)
    assert 2 <= len(seen) <= 2 + parallel_steps


def test_stopped_run_continues_to_the_same_bytes(tmp_path: Path) -> None:
    run_all(tmp_path / "whole" / "task")
    made = steps(tmp_path / "stopped", Steering(tmp_path / "stopped"))
    list(islice(made, 3))
    Steering(tmp_path / "stopped").add(Action.STOP)
    with pytest.raises(Interrupted):
        list(made)
    list(steps(tmp_path / "stopped", Steering(tmp_path / "stopped")))  # the old request no longer counts
    assert contents(tmp_path / "stopped" / "task") == contents(tmp_path / "whole" / "task")


def test_a_paused_run_begins_no_step_until_resumed(tmp_path: Path) -> None:
    made: list[StepRecord] = []
    running = steps(tmp_path, Steering(tmp_path))
    made += islice(running, 2)
    Steering(tmp_path).add(Action.PAUSE)
    thread = threading.Thread(target=lambda: made.extend(running))
    thread.start()
    time.sleep(0.5)
    assert len(made) == 2
    Steering(tmp_path).add(Action.RESUME)
    thread.join(60)
    assert len(list((tmp_path / "task").glob("step_*_log.json"))) == STEPS + 1


def test_steered_stop_is_no_success_of_batch() -> None:
    def work() -> Iterator[StepRecord]:
        raise Interrupted("stopped by adaexplore steer")
        yield

    task = Task(1, "1", "1_1", "", "fp32", Path("x.py"))
    with pytest.raises(Interrupted, match="steer"):
        list(run_batch([(task, work())], 1, threading.Event()))


def test_the_command_notes_the_request(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("")
    with RunRecords(tmp_path).lock():
        assert main(["steer", str(tmp_path), "--pause"]) == 0
    assert [event.action for event in Steering(tmp_path).events()] == [Action.PAUSE]
    assert "--resume" in capsys.readouterr().out


def test_finished_run_cannot_be_steered(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("")
    assert main(["steer", str(tmp_path), "--stop"]) == 2
    assert "no process" in capsys.readouterr().err
    assert not (tmp_path / "steering.jsonl").exists()


def test_unreadable_events_are_left_out(tmp_path: Path) -> None:
    asked = Steering(tmp_path)
    (tmp_path / "steering.jsonl").write_text('{"action": "explode", "time": "now"}\n[\n')
    assert not asked.paused()
    Steering(tmp_path).add(Action.PAUSE)
    assert asked.paused()


def test_a_pinned_step_is_edited_next_once(tmp_path: Path) -> None:
    made = steps(tmp_path, Steering(tmp_path))
    list(islice(made, 3))
    Steering(tmp_path).add(Action.PIN, TASK.key, 1)
    Steering(tmp_path).add(Action.PIN, "9_9", 2)
    rest = list(made)
    assert [record.node.plan.step for record in rest if record.pinned] == [4]
    assert rest[0].node.plan == Plan(4, StepKind.SMALL, 1, (1,))
    assert json.loads((tmp_path / "task" / "step_4_log.json").read_text())["pinned"] is True
    assert "pinned" not in (tmp_path / "task" / "step_5_log.json").read_text()


def test_a_pinned_step_is_replayed(tmp_path: Path) -> None:
    made = steps(tmp_path / "first", Steering(tmp_path / "first"))
    list(islice(made, 3))
    Steering(tmp_path / "first").add(Action.PIN, TASK.key, 1)
    list(made)
    steered = recorded_steering(RunRecords(tmp_path / "first"), "task")
    assert steered == {4: Steered(pinned=1)}
    again = replace(solver(tmp_path / "again" / "task"), steered=steered)
    list(solve(again, threading.Event()))
    assert contents(tmp_path / "again" / "task") == contents(tmp_path / "first" / "task")


def test_note_ends_prompts_until_it_is_removed(tmp_path: Path) -> None:
    made = steps(tmp_path, Steering(tmp_path))
    found = list(islice(made, 2))
    Steering(tmp_path).add(Action.NOTE, text="try split-K")
    found += islice(made, 2)
    Steering(tmp_path).add(Action.NOTE, TASK.key)
    found += made
    ends = [record.draft.exchanges[0].prompt.endswith("try split-K\n") for record in found]
    assert ends == [False, False, True, True] + [False] * (STEPS - 4)
    noted = Steered(note="try split-K")
    assert recorded_steering(RunRecords(tmp_path), "task") == {3: noted, 4: noted}


def test_a_note_is_replayed(tmp_path: Path) -> None:
    made = steps(tmp_path / "first", Steering(tmp_path / "first"))
    list(islice(made, 2))
    Steering(tmp_path / "first").add(Action.NOTE, text="try split-K")
    list(made)
    again = solver(tmp_path / "again" / "task")
    steered = recorded_steering(RunRecords(tmp_path / "first"), "task")
    list(solve(replace(again, steered=steered), threading.Event()))
    assert contents(tmp_path / "again" / "task") == contents(tmp_path / "first" / "task")


def test_the_command_keeps_a_note(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.yaml").write_text("")
    with RunRecords(tmp_path).lock():
        assert main(["steer", str(tmp_path), "--note", "x" * 2001]) == 2
        assert main(["steer", str(tmp_path), "--note", "try split-K"]) == 0
    assert Steering(tmp_path).events()[0].words.endswith("note 'try split-K'")
    assert "at most 2000" in capsys.readouterr().err


@pytest.mark.parametrize("parallel_steps", [1, 3])
def test_nothing_is_planned_below_a_banned_step(tmp_path: Path, parallel_steps: int) -> None:
    made = steps(tmp_path, Steering(tmp_path), parallel_steps=parallel_steps)
    first = list(islice(made, 3))
    Steering(tmp_path).add(Action.BAN, TASK.key, 1)
    rest = list(made)
    below = {1} | {record.node.plan.step for record in first if record.node.plan.parent_id == 1}
    later = [record.node.plan for record in rest if record.node.plan.banned]
    assert len(later) >= STEPS - 3 - parallel_steps
    assert not [plan for plan in later if plan.parent_id in below or below & set(plan.context_ids)]


def test_bans_outlive_a_session_and_are_replayed(tmp_path: Path) -> None:
    made = steps(tmp_path / "first", Steering(tmp_path / "first"))
    list(islice(made, 3))
    Steering(tmp_path / "first").add(Action.BAN, TASK.key, 1)
    list(islice(made, 1))
    rest = list(steps(tmp_path / "first", Steering(tmp_path / "first")))
    assert all(record.node.plan.banned == (1,) for record in rest[5:])
    steered = recorded_steering(RunRecords(tmp_path / "first"), "task")
    again = replace(solver(tmp_path / "again" / "task"), steered=steered)
    list(solve(again, threading.Event()))
    assert contents(tmp_path / "again" / "task") == contents(tmp_path / "first" / "task")


def test_a_pin_without_a_kernel_is_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made = steps(tmp_path, Steering(tmp_path))
    list(islice(made, 1))
    Steering(tmp_path).add(Action.PIN, TASK.key, 77)
    assert not any(record.pinned for record in made)
    assert "no kernel of step 77" in caplog.text


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["--pin", "1"], 0, "edits step 1"),
        (["--pin", "2"], 2, "step_2.py"),
        (["--ban", "1"], 0, "ignores step 1"),
        (["--pin", "1", "--task", "9_9"], 2, "2_1"),
    ],
)
def test_command_requires_an_existing_kernel(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, said: str
) -> None:
    (tmp_path / "2_1").mkdir()
    (tmp_path / "2_1" / "step_1.py").write_text("x = 1")
    with RunRecords(tmp_path).lock():
        assert main(["steer", str(tmp_path), *arguments]) == code
    out, err = capsys.readouterr()
    assert said in out + err
    assert [(event.task, event.node) for event in Steering(tmp_path).events()] == [("2_1", 1)] * (code == 0)
