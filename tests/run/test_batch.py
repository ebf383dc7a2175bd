from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaexplore.core.draft import Draft, DraftOutcome
from adaexplore.core.errors import BudgetReached, Interrupted, JudgeUnavailableError, ProblemError
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import NodeState, StepRecord
from adaexplore.core.task import Task
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import NO_SCORE
from adaexplore.run import batch
from adaexplore.run.batch import Progress, run_batch

TASKS = [Task(1, str(number), "x", "", "fp32", Path("x.py")) for number in range(6)]


def record(step: int) -> StepRecord:
    node = NodeState(Plan(step, StepKind.LARGE, 0), 1, 1, 0.0, 0.0, NO_SCORE, 2, 0, NO_SCORE)
    return StepRecord(node, Draft(DraftOutcome.EMPTY, "", (), Usage()), None, False)


def test_every_task_runs_once_and_ends() -> None:
    def work(task: Task) -> Iterator[StepRecord]:
        yield record(1)
        yield record(2)

    news = list(run_batch([(task, work(task)) for task in TASKS], 3, threading.Event()))
    assert sorted(item.task.key for item in news if item.result is None) == [task.key for task in TASKS]
    assert sum(item.result is not None for item in news) == 2 * len(TASKS)


def test_unjudgeable_problem_ends_only_its_task() -> None:
    def work(task: Task) -> Iterator[StepRecord]:
        if task.problem_id == "2":
            raise ProblemError("too large")
        yield record(1)

    news = list(run_batch([(task, work(task)) for task in TASKS], 2, threading.Event()))
    assert [item.task.problem_id for item in news if item.problem is not None] == ["2"]
    assert sum(item.result is not None for item in news) == len(TASKS) - 1


def test_judge_failure_stops_the_batch() -> None:
    def work(task: Task) -> Iterator[StepRecord]:
        if task.problem_id == "1":
            raise JudgeUnavailableError("gone")
        yield record(1)

    stop = threading.Event()
    with pytest.raises(JudgeUnavailableError, match="gone"):
        list(run_batch([(task, work(task)) for task in TASKS], 1, stop))
    assert stop.is_set()


def test_hanging_step_is_stopped_after_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "GRACE_S", 0.3)
    monkeypatch.setattr(batch, "DROP_AFTER_S", 0.3)

    def work(task: Task) -> Iterator[StepRecord]:
        yield record(1)
        time.sleep(30)

    news: list[Progress[StepRecord]] = []
    begun = time.monotonic()
    with pytest.raises(BudgetReached, match=r"max_wall_s: 0\.3 s have passed"):
        news.extend(run_batch([(task, work(task)) for task in TASKS], 1, threading.Event(), 0.3))
    assert 0.6 <= time.monotonic() - begun < 10


def test_stop_interrupts_and_keeps_earlier_results() -> None:
    stop = threading.Event()

    def work(task: Task) -> Iterator[StepRecord]:
        yield record(1)
        if task.problem_id == "1":
            stop.set()
            raise Interrupted("stopped")

    seen: list[Progress[StepRecord]] = []
    with pytest.raises(Interrupted):
        deque(map(seen.append, run_batch([(task, work(task)) for task in TASKS], 1, stop)))
    assert {item.task.problem_id for item in seen} == {"0", "1"}


def test_step_that_hangs_is_dropped_after_the_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batch, "DROP_AFTER_S", 0.05)
    stop, release = threading.Event(), threading.Event()

    def work(task: Task) -> Iterator[StepRecord]:
        stop.set()
        release.wait(30)
        yield record(1)

    begun = time.monotonic()
    with pytest.raises(Interrupted):
        list(run_batch([(task, work(task)) for task in TASKS[:1]], 1, stop))
    assert time.monotonic() - begun < 10
    release.set()
