from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from adaexplore.core.draft import Draft, DraftOutcome
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import Plan, Purpose, StepKind
from adaexplore.core.step import NodeState, StepRecord
from adaexplore.core.task import Task
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import NO_SCORE, Verdict
from adaexplore.judge_client.dummy import DummyJudge
from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.llm.protocol import ModelRequest
from adaexplore.records.run_records import RunRecords
from adaexplore.run.memory import open_memory
from adaexplore.run.origin import Fork
from adaexplore.run.session import open_session
from adaexplore.settings.config import RunConfig
from skill_memory.failures.sources import from_task
from skill_memory.rule import Rule, Verified
from skill_memory.store import make_memory, read_rules, write_rules
from tests.stub_model import StubModel
from tests.verdicts import make_verdict

RULE = "You cannot call a dtype as a function; use the method to of a tensor instead."
TASK = Task(1, "2", "2_x", "", "fp32", Path("2_x.py"))


def failed(step: int, message: str, evaluated: bool = True, parent: int = 0) -> StepRecord:
    kind = StepKind.SMALL if parent else StepKind.LARGE
    node = NodeState(Plan(step, kind, parent), 1, 1, 0.0, 0.0, NO_SCORE, step + 1, 0, NO_SCORE)
    verdict = make_verdict(status=Status.COMPILE, metadata={"compilation_error": f"TypeError: {message}"})
    return StepRecord(node, Draft(DraftOutcome.WRITTEN, "x = 1\n", (), Usage()), verdict, evaluated)


def record(folder: Path, key: str, *steps: StepRecord) -> RunRecords:
    run = RunRecords(folder)
    for step in steps:
        run.task(key).write_step(step)
    return run


def config(path: Path, **more: object) -> RunConfig:
    chosen = {
        "memory_update": True,
        "general_memory_path": str(path),
        "dummy": True,
        "server_type": "offline",
    }
    return RunConfig.model_validate({**chosen, **more})


def counts(path: Path) -> list[float]:
    return [rule.count for rule in read_rules(path)]


def test_judged_failures_become_rules_with_reported_cost(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    model = StubModel(lambda _: RULE)
    memory = open_memory(config(tmp_path / "m.txt", knowledge_1_threshold=1), model)
    assert memory.rules() == ()
    with caplog.at_level(logging.INFO):
        unseen = failed(2, "another", evaluated=False)
        steps = (failed(1, "not callable"), unseen, failed(3, "not callable", parent=1))
        memory.task_finished(record(tmp_path / "run", "1_2", *steps), "1_2")
        assert memory.rules() == ()
        memory.task_finished(record(tmp_path / "run", "1_3", failed(1, "not callable")), "1_3")
    assert memory.rules() == (RULE,)
    assert counts(tmp_path / "m.txt") == [2]
    assert len(model.requests) == 1
    assert "task 1_3 added 1 new rules and raised 0; 1 requests, cost $0.0000" in caplog.text


class Failing(DummyJudge):
    """A judge that finds the same mistake in every candidate."""

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        metadata = {"compilation_error": "TypeError: not callable"}
        return make_verdict(status=Status.COMPILE, metadata=metadata)


@pytest.fixture
def go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., float]:
    """Run one task in which all steps fail independently; return the counts in the memory."""
    make_memory(tmp_path / "m.txt")
    monkeypatch.setattr("adaexplore.judge_client.access.DummyJudge", Failing)
    monkeypatch.setattr("adaexplore.offline_writer.writer.OfflineWriter", lambda _: StubModel(answer))

    def answer(request: ModelRequest) -> str | None:
        return RULE if request.purpose is Purpose.RULE else None

    def run(name: str, steps: int, fork: Fork | None = None, update: bool = True, **more: object) -> float:
        chosen = config(tmp_path / "m.txt", memory_update=update, agent_type="PS", total_steps=steps, **more)
        with open_session(chosen, [TASK], tmp_path / name, threading.Event(), fork=fork) as session:
            list(session.progress())
        return sum(counts(tmp_path / "m.txt"))

    return run


def test_failures_of_copied_steps_are_counted_once(tmp_path: Path, go: Callable[..., float]) -> None:
    assert go("run", 3) == 3
    assert go("fork", 4, Fork(tmp_path / "run", 2)) == 3 + 2
    assert go("next", 5, resume_from=str(tmp_path / "fork")) == 5 + 1
    assert go("next", 5, resume_from=str(tmp_path / "fork")) == 6
    assert go("fork of next", 5, Fork(tmp_path / "next", 5)) == 6


def test_moved_run_folder_keeps_its_identity(tmp_path: Path, go: Callable[..., float]) -> None:
    assert go("run", 3) == 3
    (tmp_path / "run").rename(tmp_path / "moved")
    assert go("moved", 4) == 4
    assert go("fork", 4, Fork(tmp_path / "moved", 4)) == 4
    assert go("run", 3) == 4 + 3  # another run where the first one was


def test_copied_uncounted_failures_are_counted_by_new_run(tmp_path: Path, go: Callable[..., float]) -> None:
    assert go("run", 3, update=False) == 0
    assert go("next", 4, resume_from=str(tmp_path / "run")) == 4
    assert go("fork", 3, Fork(tmp_path / "run", 3)) == 4


def test_small_step_on_copied_kernel_shares_its_lineage(
    tmp_path: Path,
) -> None:
    steps = (failed(1, "not callable"), failed(2, "not callable", parent=1), failed(3, "not callable"))
    record(tmp_path / "run", "1_2", steps[0])
    run = record(tmp_path / "next", "1_2", *steps)
    run.write_makers("1_2", RunRecords(tmp_path / "run").makers("1_2", 1))
    found = from_task(run, "1_2").tasks
    occurrences = {task.occurrence(failure) for task in found for failure in task.failures}
    assert occurrences == {f"{tmp_path}/run/1_2#1", f"{tmp_path}/next/1_2#3"}
    assert sum(len(task.failures) for task in found) == 3


def test_run_warns_of_foreign_memory_and_drops_retired(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "m.jsonl"
    retired = Rule("You cannot old.", 9, verified=(Verified("3.7.1", "sm_90", False),))
    write_rules(path, [retired, Rule(RULE, 9, verified=(Verified("3.7.1", "sm_90", True),))])
    memory = open_memory(config(path, memory_update=False), StubModel())

    def judge(triton: str) -> JudgeIdentity:
        return JudgeIdentity("cpu", "CPU", {"triton": triton})

    assert memory.under(judge("3.7.1")).rules() == (RULE,)
    assert not caplog.records
    assert memory.under(judge("3.9.0")).rules() == ("You cannot old.", RULE)
    (record,) = caplog.records
    assert "verified with Triton 3.7.1, the judge has 3.9.0" in record.getMessage()
