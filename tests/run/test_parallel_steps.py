"""Several steps of one task in flight."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import pytest

from adaexplore.core.errors import Interrupted, JudgeUnavailableError
from adaexplore.core.plan import Plan
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.llm.protocol import ModelRequest
from adaexplore.records.task_records import TaskRecords
from adaexplore.run.solve import solve
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.mcts import Mcts
from tests.run.parts import STEPS, StubJudge, contents, run_all, solver
from tests.stub_model import StubModel

WAIT_S = 20.0
"""Longest that a test waits for another thread, which fails it."""


class Watched(Mcts):
    """A policy that records the steps in flight at each plan."""

    def __init__(self) -> None:
        super().__init__(SearchKnobs())
        self.pending: list[list[int]] = []

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        self.pending.append([plan.step for plan in pending])
        return super().plan(step, rng, pending)


def step_of(request: ModelRequest) -> int:
    return int(request.key.split("/")[1])


def observed(records: Sequence[StepRecord]) -> list[int]:
    return [record.node.plan.step for record in records if record.node.plan.step > 0]


def straggling(release_at: int) -> StubModel:
    """Return a model that answers step 1 only after the request of step ``release_at``."""
    released = threading.Event()

    def answer(request: ModelRequest) -> str | None:
        if step_of(request) == release_at:
            released.set()
        if step_of(request) == 1:
            assert released.wait(WAIT_S), "the straggler held up the others"
        return None

    return StubModel(answer)


def test_four_parallel_model_calls_are_pending_for_policy(tmp_path: Path) -> None:
    together = threading.Barrier(4)

    def answer(request: ModelRequest) -> str | None:
        if step_of(request) <= 4:
            together.wait(WAIT_S)
        return None

    policy = Watched()
    records = run_all(tmp_path, policy=policy, model=StubModel(answer), parallel_steps=4)
    assert sorted(observed(records)) == list(range(1, STEPS + 1))
    assert policy.pending[:4] == [[], [1], [1, 2], [1, 2, 3]]
    assert max(len(pending) for pending in policy.pending) == 3


def test_sequential_policy_never_sees_a_pending_plan(tmp_path: Path) -> None:
    policy = Watched()
    run_all(tmp_path, policy=policy)
    assert policy.pending == [[]] * STEPS


@pytest.mark.parametrize("agent_type", ["MCTS", "IRS", "IRLE", "PS"])
def test_slow_step_blocks_no_other_and_is_recorded(tmp_path: Path, agent_type: str) -> None:
    records = run_all(tmp_path, agent_type, model=straggling(release_at=7), parallel_steps=3)
    order = observed(records)
    assert sorted(order) == list(range(1, STEPS + 1))
    assert order.index(1) >= 5
    read = TaskRecords(tmp_path, agent_type).steps()
    assert observed(read) == order
    assert [record.node.total_nodes for record in read if record.node.plan.step] == list(range(2, STEPS + 2))
    best = max(record.node.score for record in records)
    metrics = json.loads((tmp_path / f"global_best_metrics_{STEPS}.json").read_text())
    assert metrics["runtime_stats"]["fast_p"] == best.speedup


@pytest.mark.parametrize("agent_type", ["MCTS", "IRS", "IRB", "PS"])
@pytest.mark.parametrize("stopped_after", range(1, STEPS))
def test_run_stopped_at_any_step_continues(tmp_path: Path, agent_type: str, stopped_after: int) -> None:
    first = solve(solver(tmp_path, agent_type, parallel_steps=4), threading.Event())
    begun = observed(list(islice(first, stopped_after)))
    model, judge = StubModel(), StubJudge()
    records = run_all(tmp_path, agent_type, model=model, judge=judge, parallel_steps=4)
    assert observed(records)[:stopped_after] == begun
    assert sorted(observed(records)) == list(range(1, STEPS + 1))
    assert {step_of(request) for request in model.requests} == set(range(1, STEPS + 1)) - set(begun)
    known = {record.draft.source for record in records[:stopped_after] if record.verdict is not None}
    assert known.isdisjoint(judge.judged)
    assert observed(TaskRecords(tmp_path, agent_type).steps()) == observed(records)


def test_resume_with_other_parallel_steps_is_complete(tmp_path: Path) -> None:
    list(islice(solve(solver(tmp_path, model=straggling(6), parallel_steps=4), threading.Event()), 5))
    assert sorted(observed(run_all(tmp_path, parallel_steps=1))) == list(range(1, STEPS + 1))
    assert sorted(observed(run_all(tmp_path, parallel_steps=8, total_steps=30))) == list(range(1, 31))


class Slow(StubJudge):
    """A judge that answers after some time, or when a second request arrives."""

    def __init__(self) -> None:
        super().__init__()
        self._asked_again = threading.Event()

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        if self.judged:
            self._asked_again.set()
        verdict = super().evaluate(task, source, best_so_far)
        self._asked_again.wait(0.3)
        return verdict


def test_equal_drafts_in_flight_are_judged_once(tmp_path: Path) -> None:
    judge = Slow()
    model = StubModel(lambda _: "```python\nclass ModelNew: ...\n```")
    records = run_all(tmp_path, "PS", model=model, judge=judge, parallel_steps=4)
    assert len(judge.judged) == 1
    assert sum(record.evaluated for record in records) == 1
    assert len({record.verdict.score for record in records if record.verdict is not None}) == 1
    assert all(record.verdict is not None for record in records)


def test_several_judges_work_on_one_task(tmp_path: Path) -> None:
    together = threading.Barrier(2)

    class Half(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            if not self.judged:
                together.wait(WAIT_S)
            return super().evaluate(task, source, best_so_far)

    judges = [Half(), Half()]
    run_all(tmp_path, "PS", judge=judges, parallel_steps=2)
    assert all(judge.judged for judge in judges)
    assert sum(len(judge.judged) for judge in judges) == STEPS


def test_error_keeps_other_steps_in_flight(tmp_path: Path) -> None:
    failed = threading.Event()

    class Broken(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            if source.endswith("= 2\n"):
                failed.set()
                raise JudgeUnavailableError("gone")
            if len(self.judged) < 1 or source.endswith("= 3\n"):
                assert failed.wait(WAIT_S)
            return super().evaluate(task, source, best_so_far)

    with pytest.raises(JudgeUnavailableError, match="gone"):
        run_all(tmp_path, "PS", judge=Broken(), parallel_steps=3)
    assert sorted(observed(TaskRecords(tmp_path, "PS").steps())) == [1, 3]


def test_stop_plans_no_more_and_run_continues_later(tmp_path: Path) -> None:
    stop = threading.Event()

    def answer(request: ModelRequest) -> str | None:
        if step_of(request) == 6:
            stop.set()
        return None

    with pytest.raises(Interrupted):
        list(solve(solver(tmp_path, model=StubModel(answer), parallel_steps=3), stop))
    kept = observed(TaskRecords(tmp_path, "MCTS").steps())
    assert 6 not in kept
    assert max(kept, default=0) <= 8
    assert sorted(observed(run_all(tmp_path, parallel_steps=3))) == list(range(1, STEPS + 1))


def test_parallel_steps_in_order_change_nothing(tmp_path: Path) -> None:
    """PS plans do not depend on each other, so only the order of observation could differ."""
    turn = threading.Condition()
    answered = [0]

    def answer(request: ModelRequest) -> str | None:
        with turn:
            assert turn.wait_for(lambda: answered[0] == step_of(request) - 1, WAIT_S)
        return None

    def steps() -> list[StepRecord]:
        found = []
        parallel = solver(tmp_path / "four", "PS", model=StubModel(answer), parallel_steps=4)
        for record in solve(parallel, threading.Event()):
            found.append(record)
            with turn:
                answered[0] += 1
                turn.notify_all()
        return found

    assert observed(steps()) == list(range(1, STEPS + 1))
    run_all(tmp_path / "one", "PS")
    four = contents(tmp_path / "four")
    del four["plans.json"]
    assert four == contents(tmp_path / "one")
