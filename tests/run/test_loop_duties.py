"""The loop with a budget, a stop request, and existing records."""

from __future__ import annotations

import copy
import random
import threading
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from adaexplore.agent.agent import Agent, AgentOptions
from adaexplore.core.draft import DraftOutcome, RepairReason
from adaexplore.core.errors import Interrupted, JudgeUnavailableError
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import Plan
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport
from adaexplore.llm.budget import Budget
from adaexplore.llm.meter import MeteredClient
from adaexplore.llm.protocol import ModelRequest
from adaexplore.preflight.findings import Finding
from adaexplore.run import step
from adaexplore.run.solve import solve
from adaexplore.run.step import Solver
from adaexplore.search.knobs import SearchKnobs
from adaexplore.search.mcts import Mcts
from adaexplore.settings.config import RunConfig
from tests.run.parts import FACTS, STEPS, TASK, StubJudge, run_all, solver
from tests.stub_model import StubModel
from tests.verdicts import make_verdict


class Told(Budget):
    """A budget that records its calls."""

    def __init__(self) -> None:
        super().__init__(RunConfig(), MeteredClient(StubModel()))
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
def test_admitted_steps_are_settled_and_seeds_not_admitted(tmp_path: Path, parallel_steps: int) -> None:
    words = finished(solver(tmp_path, parallel_steps=parallel_steps, seeds=(numbered(901), numbered(902))))
    assert (words.count("admit"), words.count("settle"), words.count("drop")) == (STEPS - 2, STEPS - 2, 0)


def test_step_without_result_is_dropped(tmp_path: Path) -> None:
    class Broken(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            if len(self.judged) == 2:
                raise JudgeUnavailableError("gone")
            return super().evaluate(task, source, best_so_far)

    budget = Told()
    with pytest.raises(JudgeUnavailableError):
        list(solve(replace(solver(tmp_path, judge=Broken()), budget=budget), threading.Event()))
    assert budget.words == ["admit", "settle"] * 2 + ["admit", "drop"]


def test_after_a_stop_no_model_is_asked(tmp_path: Path) -> None:
    stop = threading.Event()

    class Stopping(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            stop.set()
            return super().evaluate(task, source, best_so_far)

    model = StubModel()
    with pytest.raises(Interrupted):
        list(solve(solver(tmp_path, "PS", model=model, judge=Stopping()), stop))
    assert [request.key for request in model.requests] == ["1_1/1/large"]


class Drawing(Mcts):
    """A policy that records the first number of each step."""

    def __init__(self) -> None:
        super().__init__(SearchKnobs())
        self.drawn: dict[int, float] = {}

    def plan(self, step: int, rng: random.Random, pending: Sequence[Plan] = ()) -> Plan:
        self.drawn[step] = copy.copy(rng).random()
        return super().plan(step, rng, pending)


def test_each_step_has_its_own_random_stream(tmp_path: Path) -> None:
    whole, begun, resumed = Drawing(), Drawing(), Drawing()
    run_all(tmp_path / "whole", policy=whole)
    run_all(tmp_path / "resumed", policy=begun, total_steps=5)
    run_all(tmp_path / "resumed", policy=resumed)
    assert len(set(whole.drawn.values())) == STEPS
    assert begun.drawn | resumed.drawn == whole.drawn


@pytest.mark.parametrize(
    ("edit", "outcome"),
    [("number = 1  # one", DraftOutcome.UNCHANGED), (None, DraftOutcome.EDIT_FAILED)],
)
def test_edits_without_effect_keep_the_verdict(
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


def test_resumed_run_knows_written_sources(tmp_path: Path) -> None:
    class Tuning(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            self.judged.append(source)
            tuned = {"tuned": {"values": {"BLOCK": 128}}}
            stats = {"fast_p": 2.0}
            return make_verdict(status=Status.PASSED, metadata=tuned, runtime_ms=1.0, runtime_stats=stats)

    model = StubModel(lambda _: f"```python\n{DECLARED}```")
    first, second = Tuning(), Tuning()
    run_all(tmp_path, "PS", judge=first, model=model, total_steps=1)
    run_all(tmp_path, "PS", judge=second, model=model, total_steps=2)
    assert (first.judged, second.judged) == ([DECLARED], [])


def test_resumed_run_repeats_no_compile_request(tmp_path: Path) -> None:
    class Compiling(StubJudge):
        def __init__(self) -> None:
            super().__init__()
            self.compiled: list[str] = []

        def compile(self, task: Task, source: str, *, asm: bool = False) -> CompileReport:
            self.compiled.append(source)
            return CompileReport(ok=False, status="compile", kernel="k", line=1, message="no")

    def answer(request: ModelRequest) -> str:
        return f"```python\n{numbered(7)}```"

    def compiled(steps: int) -> Sequence[str]:
        judge = Compiling()
        made = solver(tmp_path, "PS", judge=judge, total_steps=steps)
        options = AgentOptions(repaired=frozenset({RepairReason.GATE}), repair_attempts=0)
        agent = Agent(StubModel(answer), TASK, FACTS, options=options)
        list(solve(replace(made, agent=agent), threading.Event()))
        return judge.compiled

    assert compiled(1) == [numbered(7)]
    assert compiled(2) == []


def test_failed_edits_of_lint_stopped_kernel_skip_judge(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Failed edits leave a program that a lint is sure about."""

    def answer(request: ModelRequest) -> str:
        if step_of(request) == 1:
            return "```python\nclass ModelNew:\n    bad = 1\n```"
        return "<old_str_1>nowhere</old_str_1>\n<new_str_1>x</new_str_1>"

    def stopped(source: str, *_: object) -> list[Finding]:
        return [Finding("syntax", 1, "it cannot compile")] if "bad" in source else []

    monkeypatch.setattr(step, "lint", stopped)
    judge = StubJudge()
    options = AgentOptions(repair_attempts=1, repaired=frozenset({RepairReason.EDIT, RepairReason.LINT}))
    agent = Agent(StubModel(answer), TASK, FACTS, (), options)
    made = replace(solver(tmp_path, "IRS", judge=judge, total_steps=3), agent=agent)
    records = list(solve(made, threading.Event()))
    outcomes = [record.draft.outcome for record in records]
    assert outcomes == [DraftOutcome.LINT_STOPPED, DraftOutcome.EDIT_FAILED, DraftOutcome.EDIT_FAILED]
    assert judge.judged == []
    assert [record.verdict for record in records] == [records[0].verdict] * 3
    assert made.verdicts.known(records[0].draft.source) is None
