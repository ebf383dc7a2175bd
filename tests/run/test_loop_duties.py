"""What the loop owes to the budget, to a stop, and to what is on disk already."""

from __future__ import annotations

import copy
import random
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adaexplore.agent.agent import Agent, AgentOptions
from adaexplore.agent.checks import gate_check, lint_check
from adaexplore.core.draft import DraftOutcome, RepairReason
from adaexplore.core.errors import Interrupted, JudgeUnavailableError
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.task import Task
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Score, Status, Verdict
from adaexplore.judge_client.protocol import CompileFinding
from adaexplore.llm.budget import Budget, Limits
from adaexplore.llm.protocol import ModelRequest
from adaexplore.preflight.findings import Finding
from adaexplore.run.attempt import Attempt
from adaexplore.run.solve import Solver, solve
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.mcts import Mcts
from tests.run.parts import FACTS, STEPS, TASK, StubJudge, run_all, solver
from tests.stub_model import StubModel


class Told(Budget):
    """Remembers what it was told."""

    def __init__(self) -> None:
        super().__init__(Limits(), Usage)
        self.words: list[str] = []

    def admit(self) -> None:
        self.words.append("admit")

    def settle(self, seconds: float) -> None:
        assert seconds >= 0
        self.words.append("settle")

    def drop(self) -> None:
        self.words.append("drop")


def numbered(number: int) -> str:
    return f"class ModelNew:\n    number = {number}\n"


def step_of(request: ModelRequest) -> int:
    return int(request.key.split("/")[1])


def finished(made: Solver) -> list[str]:
    budget = Told()
    list(solve(replace(made, budget=budget), threading.Event()))
    return budget.words


@pytest.mark.parametrize("parallel_steps", [1, 4])
def test_every_admitted_step_is_settled_and_seeds_are_not_admitted(
    tmp_path: Path, parallel_steps: int
) -> None:
    words = finished(solver(tmp_path, parallel_steps=parallel_steps, seeds=(numbered(901), numbered(902))))
    assert (words.count("admit"), words.count("settle"), words.count("drop")) == (STEPS - 2, STEPS - 2, 0)


def test_a_step_that_comes_to_nothing_is_dropped(tmp_path: Path) -> None:
    class Broken(StubJudge):
        def evaluate(self, task: Task, source: str, *, force: bool = False) -> Verdict:
            if len(self.judged) == 2:
                raise JudgeUnavailableError("gone")
            return super().evaluate(task, source, force=force)

    budget = Told()
    with pytest.raises(JudgeUnavailableError):
        list(solve(replace(solver(tmp_path, judge=Broken()), budget=budget), threading.Event()))
    assert budget.words == ["admit", "settle"] * 2 + ["admit", "drop"]


def test_after_a_stop_no_model_is_asked(tmp_path: Path) -> None:
    stop = threading.Event()

    class Stopping(StubJudge):
        def evaluate(self, task: Task, source: str, *, force: bool = False) -> Verdict:
            stop.set()
            return super().evaluate(task, source, force=force)

    model = StubModel()
    with pytest.raises(Interrupted):
        list(solve(solver(tmp_path, "PS", model=model, judge=Stopping()), stop))
    assert [request.key for request in model.requests] == ["1_1/1/large"]


class Drawing(Mcts):
    """Remembers the first number that each step draws."""

    def __init__(self) -> None:
        super().__init__(SearchKnobs())
        self.drawn: dict[int, float] = {}

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        self.drawn[step] = copy.copy(rng).random()
        return super().plan(step, rng, pending)


def test_each_step_draws_numbers_of_its_own_whatever_was_drawn_before(tmp_path: Path) -> None:
    whole, begun, resumed = Drawing(), Drawing(), Drawing()
    run_all(tmp_path / "whole", policy=whole)
    run_all(tmp_path / "resumed", policy=begun, total_steps=5)
    run_all(tmp_path / "resumed", policy=resumed)
    assert len(set(whole.drawn.values())) == STEPS
    assert begun.drawn | resumed.drawn == whole.drawn


class Eager(Mcts):
    """Wants every measured kernel to be timed twice."""

    def __init__(self) -> None:
        super().__init__(SearchKnobs())

    def wants_retiming(self, score: Score) -> bool:
        return True


def test_a_known_verdict_is_not_timed_again(tmp_path: Path) -> None:
    judge = StubJudge()
    model = StubModel(lambda _: f"```python\n{numbered(7)}```")
    records = run_all(tmp_path, policy=Eager(), judge=judge, model=model, seeds=(numbered(7),), total_steps=3)
    assert [record.evaluated for record in records] == [True, False, False]
    assert len(judge.judged_again) == 1


@pytest.mark.parametrize(
    ("edit", "outcome"),
    [("number = 1  # one", DraftOutcome.UNCHANGED), (None, DraftOutcome.EDIT_FAILED)],
)
def test_what_edits_leave_as_it_was_keeps_its_verdict(
    tmp_path: Path, edit: str | None, outcome: DraftOutcome
) -> None:
    old = "number = 1" if edit else "nowhere"
    small = f"<old_str_1>{old}</old_str_1>\n<new_str_1>{edit}</new_str_1>"
    judge = StubJudge()
    model = StubModel(lambda request: small if step_of(request) > 1 else None)
    first, second = run_all(tmp_path, "IRS", judge=judge, model=model, total_steps=2)
    assert (second.draft.outcome, second.verdict, second.evaluated) == (outcome, first.verdict, False)
    assert second.node.score == first.node.score
    assert judge.judged == [numbered(1)]


DECLARED = 'class ModelNew: ...\nBLOCK = 64\nTUNABLES = {"BLOCK": [32, 64, 128]}\n'


def test_a_resumed_run_knows_sources_as_they_were_written(tmp_path: Path) -> None:
    class Tuning(StubJudge):
        def evaluate(self, task: Task, source: str, *, force: bool = False) -> Verdict:
            self.judged.append(source)
            tuned = {"tuned": {"values": {"BLOCK": 128}}}
            stats = {"fast_p": 2.0}
            return Verdict(status=Status.PASSED, metadata=tuned, runtime_ms=1.0, runtime_stats=stats)

    model = StubModel(lambda _: f"```python\n{DECLARED}```")
    first, second = Tuning(), Tuning()
    run_all(tmp_path, "PS", judge=first, model=model, total_steps=1)
    run_all(tmp_path, "PS", judge=second, model=model, total_steps=2)
    assert (first.judged, second.judged) == ([DECLARED], [])


def test_a_resumed_run_asks_the_compiler_nothing_again(tmp_path: Path) -> None:
    class Compiling(StubJudge):
        def __init__(self) -> None:
            super().__init__()
            self.compiled: list[str] = []

        def compile(self, task: Task, source: str) -> CompileFinding:
            self.compiled.append(source)
            return CompileFinding(Status.COMPILE, "k", 1, "no")

    def answer(request: ModelRequest) -> str:
        return f"```python\n{numbered(7)}```"

    def compiled(steps: int) -> Sequence[str]:
        judge = Compiling()
        made = solver(tmp_path, "PS", judge=judge, total_steps=steps)
        agent = Agent(StubModel(answer), TASK, FACTS, checks=(gate_check(made.verdicts.compile),))
        list(solve(replace(made, agent=agent), threading.Event()))
        return judge.compiled

    assert compiled(1) == [numbered(7)]
    assert compiled(2) == []


def test_failed_edits_of_a_kernel_that_a_lint_stopped_are_not_sent_to_the_judge(tmp_path: Path) -> None:
    """The program is still the one that a lint is sure about."""

    def answer(request: ModelRequest) -> str:
        if step_of(request) == 1:
            return "```python\nclass ModelNew:\n    bad = 1\n```"
        return "<old_str_1>nowhere</old_str_1>\n<new_str_1>x</new_str_1>"

    def stopped(source: str) -> list[Finding]:
        return [Finding("syntax", 1, "it cannot compile")] if "bad" in source else []

    judge = StubJudge()
    options = AgentOptions(repair_attempts=1, repaired=frozenset({RepairReason.EDIT, RepairReason.LINT}))
    agent = Agent(StubModel(answer), TASK, FACTS, (), options, (lint_check(stopped),))
    made = replace(solver(tmp_path, "IRS", judge=judge, total_steps=3), agent=agent)
    records = list(solve(made, threading.Event()))
    outcomes = [record.draft.outcome for record in records]
    assert outcomes == [DraftOutcome.LINT_STOPPED, DraftOutcome.EDIT_FAILED, DraftOutcome.EDIT_FAILED]
    assert judge.judged == []
    assert [record.verdict for record in records] == [records[0].verdict] * 3
    assert made.verdicts.known(records[0].draft.source) is None


class Careful(Mcts):
    """Has every new best measured twice."""

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        return Plan(step, StepKind.LARGE, 0)

    def wants_retiming(self, score: Score) -> bool:
        return score.correct and score > self.tree.best.score


class Slower(StubJudge):
    """Measures 4x, and 1x when asked again, which takes so long that a twin ends meanwhile."""

    def __init__(self, metadata: dict[str, Any] | None = None, each_s: float = 0.0) -> None:
        super().__init__()
        self.metadata = metadata or {}
        self.each_s = each_s
        self.timed_again = threading.Event()

    def evaluate(self, task: Task, source: str, *, force: bool = False) -> Verdict:
        super().evaluate(task, source, force=force)
        if force:
            self.timed_again.set()
        time.sleep(self.each_s or (0.2 if force else 0.0))
        stats = {"mean": 1.0, "fast_p": 1.0 if force else 4.0}
        return Verdict(status=Status.PASSED, metadata=self.metadata, runtime_ms=1.0, runtime_stats=stats)


def twins(
    folder: Path, judge: StubJudge, source: str, *, policy: Careful | None = None, late: int = 0
) -> Solver:
    """Two steps in flight that write ``source``; step ``late`` waits until it is being timed again."""

    def answer(request: ModelRequest) -> str:
        if isinstance(judge, Slower) and step_of(request) == late:
            judge.timed_again.wait(0.2)
        return f"```python\n{source}```"

    return solver(
        folder,
        policy=policy or Careful(SearchKnobs()),
        model=StubModel(answer),
        judge=judge,
        total_steps=2,
        parallel_steps=2,
    )


@pytest.mark.parametrize("late", [1, 2])
def test_twin_of_a_kernel_that_is_timed_again_gets_both_timings(tmp_path: Path, late: int) -> None:
    """Steps 1 and 2 write the same program at the same time; either may be the first to end."""
    judge, policy = Slower(), Careful(SearchKnobs())
    made = twins(tmp_path, judge, "class ModelNew: ...\n", policy=policy, late=late)
    records = list(solve(made, threading.Event()))
    assert [record.verdict and record.verdict.speedup for record in records] == [2.0, 2.0]
    assert [len(record.timings) for record in records].count(2) == 1
    assert (len(judge.judged), len(judge.judged_again)) == (1, 1)
    assert policy.tree.best.score.speedup == 2.0
    known = made.verdicts.known("class ModelNew: ...")
    assert known is not None
    assert known.speedup == 2.0


def test_twin_ends_with_the_error_of_the_second_timing(tmp_path: Path) -> None:
    class Judge(StubJudge):
        def evaluate(self, task: Task, source: str, *, force: bool = False) -> Verdict:
            if force:
                raise JudgeUnavailableError("gone")
            return super().evaluate(task, source)

    made = twins(tmp_path, Judge(), numbered(7))
    with pytest.raises(JudgeUnavailableError):
        list(solve(made, threading.Event()))
    assert [record.node.plan.step for record in made.records.steps()] == [0]


@pytest.mark.parametrize("late", [1, 2])
def test_twin_of_a_tuned_kernel_that_is_timed_again_gets_both_timings(tmp_path: Path, late: int) -> None:
    """What is timed again is the tuned source; both steps wrote another one."""
    judge = Slower({"tuned": {"values": {"BLOCK": 128}}})
    made = twins(tmp_path, judge, DECLARED, late=late)
    records = list(solve(made, threading.Event()))
    assert [record.verdict and record.verdict.speedup for record in records] == [2.0, 2.0]
    assert (len(judge.judged), len(judge.judged_again)) == (1, 1)


def test_twin_that_ends_before_the_kernel_that_was_timed_again_is_not_timed_once_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def late(attempt: Attempt, **changes: Any) -> Attempt:
        if "timings" in changes:
            time.sleep(0.2)
        return replace(attempt, **changes)

    monkeypatch.setattr("adaexplore.run.attempt.replace", late)

    judge = Slower(each_s=0.1)
    made = twins(tmp_path, judge, numbered(7))
    records = list(solve(made, threading.Event()))
    assert [record.verdict and record.verdict.speedup for record in records] == [2.0, 2.0]
    assert len(judge.judged_again) == 1
