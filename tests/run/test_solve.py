from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.errors import Interrupted, JudgeError, ModelUnavailableError, ProblemError
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import Purpose
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.llm.protocol import ModelRequest
from adaexplore.records.task_records import TaskRecords
from adaexplore.run.solve import solve
from tests.run.parts import STEPS, StubJudge, contents, run_all, solver
from tests.stub_model import StubModel
from tests.verdicts import changed, make_verdict


@pytest.mark.parametrize("agent_type", ["MCTS", "IRS", "IRL", "IRB", "IRLE", "PS"])
def test_every_agent_takes_all_steps_and_writes_best(tmp_path: Path, agent_type: str) -> None:
    records = run_all(tmp_path, agent_type)
    assert [record.node.plan.step for record in records] == list(range(1, STEPS + 1))
    best = max((r.verdict.score for r in records if r.verdict is not None), default=None)
    metrics = json.loads((tmp_path / f"global_best_metrics_{STEPS}.json").read_text())
    assert best is not None
    assert metrics["runtime_stats"]["fast_p"] == best.speedup
    assert (tmp_path / f"global_best_kernel_{STEPS}.py").read_text().strip()


@pytest.mark.parametrize("agent_type", ["MCTS", "IRS", "IRLE", "PS"])
@pytest.mark.parametrize("stopped_after", [1, 5, STEPS - 1])
def test_resumed_run_ends_in_the_same_bytes(tmp_path: Path, agent_type: str, stopped_after: int) -> None:
    run_all(tmp_path / "whole", agent_type)
    broken = solve(solver(tmp_path / "resumed", agent_type), threading.Event())
    list(islice(broken, stopped_after))
    run_all(tmp_path / "resumed", agent_type)
    assert contents(tmp_path / "whole") == contents(tmp_path / "resumed")


class SuspiciousJudge(StubJudge):
    """A judge that suspects kernels faster than ``limit``."""

    def __init__(self, limit: float) -> None:
        super().__init__()
        self._limit = limit

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        verdict = super().evaluate(task, source, best_so_far)
        if verdict.speedup is None or verdict.speedup <= self._limit:
            return verdict
        return changed(verdict, {"integrity": ["no_own_kernel"]})


def test_suspect_best_is_recorded_beside_best_clean(tmp_path: Path) -> None:
    plain = run_all(tmp_path / "plain")
    suspicious = run_all(tmp_path / "suspicious", judge=SuspiciousJudge(3.0))
    assert [record.node for record in suspicious] == [
        record.node for record in plain
    ]  # the search is the same
    kernel, metrics = f"global_best_kernel_{STEPS}.py", f"global_best_clean_metrics_{STEPS}.json"
    assert (tmp_path / "suspicious" / kernel).read_text() == (tmp_path / "plain" / kernel).read_text()
    clean = json.loads((tmp_path / "suspicious" / metrics).read_text())
    speedups = [
        r.verdict.speedup for r in suspicious if r.verdict is not None and r.verdict.speedup is not None
    ]
    assert max(speedups) > 3.0
    assert clean["runtime_stats"]["fast_p"] == max(speedup for speedup in speedups if speedup <= 3.0)
    assert (tmp_path / "suspicious" / f"global_best_clean_kernel_{STEPS}.py").read_text().strip()


@pytest.mark.parametrize("limit", [100.0, 0.0])
def test_no_clean_best_if_clean_or_all_flagged(tmp_path: Path, limit: float) -> None:
    run_all(tmp_path, judge=SuspiciousJudge(limit))
    assert not list(tmp_path.glob("global_best_clean_*"))


def test_shorter_search_equals_prefix_of_longer_one(tmp_path: Path) -> None:
    run_all(tmp_path / "short", total_steps=3)
    run_all(tmp_path / "long")
    before = contents(tmp_path / "long")
    records = run_all(tmp_path / "long", total_steps=3)
    assert [record.node.plan.step for record in records] == [1, 2, 3]
    short, after = contents(tmp_path / "short"), contents(tmp_path / "long")
    best = {"global_best_kernel_3.py", "global_best_metrics_3.json"}
    assert {name: after[name] for name in best} == {name: short[name] for name in best}
    assert {name: text for name, text in after.items() if name not in best} == before


def test_resume_repeats_no_model_call(tmp_path: Path) -> None:
    list(islice(solve(solver(tmp_path), threading.Event()), 5))
    model = StubModel()
    run_all(tmp_path, model=model)
    assert {int(request.key.split("/")[1]) for request in model.requests} == set(range(6, STEPS + 1))


def test_equal_programs_make_nodes_but_one_evaluation(tmp_path: Path) -> None:
    def same(request: ModelRequest) -> str | None:
        return "```python\nclass ModelNew: ...  # hi\n```" if request.purpose is Purpose.LARGE else ""

    judge = StubJudge()
    records = run_all(tmp_path, "PS", judge=judge, model=StubModel(same))
    assert len(judge.judged) == 1
    assert len(records) == STEPS
    assert [record.evaluated for record in records] == [True] + [False] * (STEPS - 1)
    assert {record.verdict for record in records if record.verdict is None} == set()


def test_huge_replies_are_not_sent_back_to_model(tmp_path: Path) -> None:
    model = StubModel(lambda _: "```python\nx = 1\n" + "# a comment\n" * 30_000 + "```")
    refused = make_verdict(status=Status.LOAD, metadata={"feedback": "too large"})
    judge = StubJudge()
    judge.evaluate = lambda *_: refused  # type: ignore[method-assign]
    records = run_all(tmp_path, judge=judge, model=model)
    assert len(records) == STEPS
    assert max(len(request.prompt) for request in model.requests) < 100_000
    assert len((tmp_path / "step_1.py").read_text()) > 300_000


def test_replies_without_code_are_steps_not_judged(tmp_path: Path) -> None:
    judge = StubJudge()
    records = run_all(tmp_path, judge=judge, model=StubModel(lambda _: ""))
    assert judge.judged == []
    assert {record.draft.outcome for record in records} == {DraftOutcome.EMPTY}
    assert not (tmp_path / f"global_best_kernel_{STEPS}.py").exists()


def test_unjudgeable_problem_costs_no_model_call(tmp_path: Path) -> None:
    model = StubModel()
    with pytest.raises(ProblemError, match="too large"):
        run_all(tmp_path, model=model, judge=StubJudge("too large"))
    assert model.requests == []


def test_failing_judge_leaves_no_step_and_no_verdict(tmp_path: Path) -> None:
    class Broken(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            if len(self.judged) == 4:
                raise JudgeError("down")
            return super().evaluate(task, source, best_so_far)

    done: list[StepRecord] = []
    with pytest.raises(JudgeError):
        done.extend(_collect(solve(solver(tmp_path, "PS", judge=Broken()), threading.Event()), done))
    assert len(done) == 4
    assert [record.node.plan.step for record in TaskRecords(tmp_path, "PS").steps()] == [1, 2, 3, 4]


def _collect(steps: Iterator[StepRecord], into: list[StepRecord]) -> list[StepRecord]:
    for record in steps:
        into.append(record)
    return []


def test_stop_drops_the_step_in_flight(tmp_path: Path) -> None:
    stop = threading.Event()

    def answer(request: ModelRequest) -> str | None:
        if request.key.startswith("1_1/3/"):
            stop.set()
        return None

    done: list[StepRecord] = []
    with pytest.raises(Interrupted):
        _collect(solve(solver(tmp_path, "PS", model=StubModel(answer)), stop), done)
    assert [record.node.plan.step for record in done] == [1, 2]
    assert not (tmp_path / "proposal_3_log.json").exists()


def test_model_failure_stops_without_a_step(tmp_path: Path) -> None:
    class Down(StubModel):
        def complete(self, request: ModelRequest) -> Any:
            raise ModelUnavailableError("gone")

    with pytest.raises(ModelUnavailableError):
        run_all(tmp_path, model=Down())
    assert [record.node.plan.step for record in TaskRecords(tmp_path, "MCTS").steps()] == [0]
