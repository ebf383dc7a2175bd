"""Requests of the loop to the judge: profiles, tuned sources, the best speedup so far."""

from __future__ import annotations

import json
import threading
from itertools import accumulate, islice
from pathlib import Path
from typing import Any

import pytest

from adaexplore.agent.agent import Conversation
from adaexplore.agent.attempt import Attempt
from adaexplore.core.errors import ModelUnavailableError
from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import to_metrics
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.core.text.dispatch import with_dispatch
from adaexplore.core.verdict import Verdict
from adaexplore.llm.protocol import ModelRequest
from adaexplore.records.run_records import RunRecords
from adaexplore.records.task_records import TaskRecords
from adaexplore.run.replay import RecordedJudge
from adaexplore.run.solve import solve
from tests.run.parts import STEPS, TASK, StubJudge, contents, run_all, solver
from tests.stub_model import StubModel
from tests.verdicts import changed, make_verdict, stats_of


def best_before(records: list[StepRecord]) -> list[float | None]:
    """Return the greatest speedup before each step."""
    speedups = [0.0] + [record.verdict.speedup or 0.0 for record in records if record.verdict is not None]
    return [best or None for best in accumulate(speedups, max)][:-1]


@pytest.mark.parametrize("stopped_after", [0, 1, 4, STEPS - 1])
def test_requests_carry_best_speedup_also_when_resumed(tmp_path: Path, stopped_after: int) -> None:
    judge = StubJudge()
    list(islice(solve(solver(tmp_path, "PS", judge=judge), threading.Event()), stopped_after))
    records = run_all(tmp_path, "PS", judge=judge)
    assert len(judge.judged) == STEPS
    assert judge.best_so_far == best_before(records)


def test_verdict_that_stopped_early_counts_as_any_other(tmp_path: Path) -> None:
    class Sequential(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            verdict = super().evaluate(task, source, best_so_far)
            if best_so_far is None or (verdict.speedup or best_so_far) >= best_so_far:
                return verdict
            return changed(verdict, stopped_early=True)

    plain = run_all(tmp_path / "plain")
    records = run_all(tmp_path / "sequential", judge=Sequential())
    assert [record.node for record in records] == [record.node for record in plain]
    stopped = [r for r in records if r.verdict is not None and stats_of(r.verdict).get("stopped_early")]
    assert stopped
    assert all(record.verdict is not None and record.verdict.speedup is not None for record in stopped)
    assert TaskRecords(tmp_path / "sequential", "MCTS").steps()[1:] == records


def test_run_with_two_timings_continues_and_replays(tmp_path: Path) -> None:
    run_all(tmp_path / TASK.key, "PS", total_steps=3)
    combined = make_verdict(
        status=Status.PASSED, runtime_ms=1.0, runtime_stats={"fast_p": 9.5, "times_judged": 2}
    )
    edited = {"log": {"retimed": True, "score": combined.score.as_list()}, "metrics": to_metrics(combined)}
    for name, change in edited.items():
        path = tmp_path / TASK.key / f"proposal_2_{name}.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | change))
    timings = tmp_path / TASK.key / "proposal_2_timings.json"
    timings.write_text(json.dumps([to_metrics(combined)] * 2))
    replayed = RecordedJudge(RunRecords(tmp_path))
    judge = StubJudge()
    records = run_all(tmp_path / TASK.key, "PS", judge=judge, total_steps=4)
    assert records[1].verdict == combined == replayed.evaluate(TASK, records[1].draft.source)
    assert judge.best_so_far == [9.5]
    assert timings.exists()


def test_correct_base_kernels_are_profiled_once_for_prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown: list[str] = []
    write = Conversation.write

    def watched(self: Conversation, recent: Any, elite: Any) -> Attempt:
        shown.extend(kernel.source for kernel in [*elite, *recent] if kernel.profile is not None)
        return write(self, recent, elite)

    monkeypatch.setattr(Conversation, "write", watched)
    judge = StubJudge()
    records = run_all(tmp_path, judge=judge, profiles=True)
    correct = {r.draft.source for r in records if r.verdict is not None and r.verdict.correct}
    assert judge.profiled
    assert len(judge.profiled) == len(set(judge.profiled))
    assert set(judge.profiled) <= correct
    assert list(dict.fromkeys(shown)) == judge.profiled
    kept = TaskRecords(tmp_path, "MCTS").profiles()
    sources = {record.node.plan.step: record.draft.source for record in records}
    assert {sources[step] for step in kept} == set(judge.profiled)


def test_small_step_profiles_the_kernel_it_edits(tmp_path: Path) -> None:
    judge = StubJudge()
    records = run_all(tmp_path, "IRS", judge=judge, profiles=True)
    sources = {record.node.plan.step: record for record in records}
    edited = [sources[record.node.plan.context_ids[-1]] for record in records[1:]]
    correct = [r.draft.source for r in edited if r.verdict is not None and r.verdict.correct]
    assert judge.profiled == list(dict.fromkeys(correct))


def test_profile_is_recorded_before_a_prompt_shows_it(tmp_path: Path) -> None:
    first, second = StubJudge(), StubJudge()
    prompts: list[str] = []

    def fail_once_profiled(request: ModelRequest) -> str | None:
        if first.profiled and not prompts:
            prompts.append(request.prompt)
            raise ModelUnavailableError("gone")
        return None

    with pytest.raises(ModelUnavailableError):
        run_all(tmp_path, judge=first, model=StubModel(fail_once_profiled), profiles=True)
    model = StubModel()
    run_all(tmp_path, judge=second, model=model, profiles=True)
    assert first.profiled
    assert set(first.profiled).isdisjoint(second.profiled)
    assert model.requests[0].prompt == prompts[0]


@pytest.mark.parametrize("stopped_after", [2, 5, STEPS - 1])
def test_a_resumed_run_asks_for_no_profile_again(tmp_path: Path, stopped_after: int) -> None:
    first, second = StubJudge(), StubJudge()
    begun = solve(solver(tmp_path / "resumed", judge=first, profiles=True), threading.Event())
    list(islice(begun, stopped_after))
    run_all(tmp_path / "resumed", judge=second, profiles=True)
    assert set(first.profiled).isdisjoint(second.profiled)
    run_all(tmp_path / "whole", profiles=True)
    assert contents(tmp_path / "whole") == contents(tmp_path / "resumed")


def test_without_profiles_none_is_requested(tmp_path: Path) -> None:
    judge = StubJudge()
    run_all(tmp_path, judge=judge)
    assert judge.profiled == []
    assert not list(tmp_path.glob("*_profile.json"))


DECLARED = 'class ModelNew: ...\nBLOCK = 64\nTUNABLES = {"BLOCK": [32, 64, 128]}\n'
TUNED = DECLARED.replace("BLOCK = 64", "BLOCK = 128")


class Tuning(StubJudge):
    """A judge whose sweep chooses 128."""

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        self.judged.append(source)
        return make_verdict(
            status=Status.PASSED,
            metadata={"tuned": {"values": {"BLOCK": 128}}},
            runtime_ms=1.0,
            runtime_stats={"fast_p": 2.0},
        )


def test_tuned_and_written_source_are_recorded_and_known(tmp_path: Path) -> None:
    texts = {1: DECLARED, 2: DECLARED, 3: TUNED, 4: DECLARED.replace("128]", "256]")}

    def answer(request: ModelRequest) -> str:
        return f"```python\n{texts[int(request.key.split('/')[1])]}```"

    judge = Tuning()
    parts: dict[str, Any] = {"judge": judge, "model": StubModel(answer), "total_steps": 3}
    records = run_all(tmp_path, "PS", **parts)
    assert judge.judged == [DECLARED]
    assert [record.evaluated for record in records] == [True, False, False]
    assert {record.draft.source for record in records} == {TUNED}
    assert [record.written for record in records] == [DECLARED, DECLARED, None]
    assert (tmp_path / "proposal_1.py").read_text() == TUNED
    assert (tmp_path / "proposal_1_written.py").read_text() == DECLARED
    assert json.loads((tmp_path / "proposal_1_log.json").read_text())["tuned"] is True
    assert TaskRecords(tmp_path, "PS").steps() == records
    again = Tuning()
    records = run_all(tmp_path, "PS", **(parts | {"judge": again, "total_steps": 4}))
    assert again.judged == [texts[4]]
    assert records[-1].draft.source == texts[4].replace("BLOCK = 64", "BLOCK = 128")


def test_numbers_by_shape_are_written_into_the_source(tmp_path: Path) -> None:
    class ByShape(StubJudge):
        def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
            by_shape = [{"shape": [5, 4], "values": {"BLOCK": 32}}]
            metadata = {"tuned": {"values": {"BLOCK": 128}, "by_shape": by_shape}}
            return make_verdict(status=Status.PASSED, metadata=metadata)

    model = StubModel(lambda request: f"```python\n{with_dispatch(DECLARED, {(1,): {'BLOCK': 32}})}```")
    run_all(tmp_path, "PS", judge=ByShape(), model=model, total_steps=1)
    assert (tmp_path / "proposal_1.py").read_text() == with_dispatch(TUNED, {(5, 4): {"BLOCK": 32}})


def test_undeclared_tuned_names_leave_source_unchanged(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    run_all(tmp_path, "PS", judge=Tuning(), total_steps=1)
    assert "does not declare" in caplog.text
    assert (tmp_path / "proposal_1.py").read_text() == "class ModelNew:\n    number = 1\n"


SEEDS = ("class ModelNew:\n    number = 901\n", "class ModelNew:\n    number = 902\n")


@pytest.mark.parametrize("agent_type", ["MCTS", "IRS", "IRL", "IRB", "IRLE", "PS"])
@pytest.mark.parametrize("parallel_steps", [1, 3])
def test_seeds_are_first_steps_without_model_call(
    tmp_path: Path, agent_type: str, parallel_steps: int
) -> None:
    model, judge = StubModel(), StubJudge()
    parts: dict[str, Any] = {"seeds": SEEDS, "parallel_steps": parallel_steps}
    records = run_all(tmp_path, agent_type, model=model, judge=judge, **parts)
    steps = {record.node.plan.step: record for record in records}
    assert [steps[step].draft.source for step in (1, 2)] == list(SEEDS)
    assert all(steps[step].evaluated and steps[step].node.plan.parent_id == 0 for step in (1, 2))
    assert set(judge.judged[:2]) == set(SEEDS)
    assert {int(request.key.split("/")[1]) for request in model.requests} == set(range(3, STEPS + 1))
    assert sorted(steps) == list(range(1, STEPS + 1))
    assert {record.node.plan.step for record in records[:2]} == {1, 2}
    if agent_type == "IRS":
        assert "number = 902" in model.requests[0].prompt


def test_equal_seeds_are_judged_once(tmp_path: Path) -> None:
    judge = StubJudge()
    run_all(tmp_path, judge=judge, seeds=(SEEDS[0], SEEDS[0] + "# twin\n"), total_steps=2)
    assert judge.judged == [SEEDS[0]]


@pytest.mark.parametrize("stopped_after", [1, 2, 3])
def test_run_with_seeds_continues(tmp_path: Path, stopped_after: int) -> None:
    run_all(tmp_path / "whole", seeds=SEEDS)
    list(islice(solve(solver(tmp_path / "resumed", seeds=SEEDS), threading.Event()), stopped_after))
    run_all(tmp_path / "resumed", seeds=SEEDS)
    assert contents(tmp_path / "whole") == contents(tmp_path / "resumed")
