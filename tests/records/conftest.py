"""Handmade steps to write."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from adaexplore.core.draft import Draft, DraftOutcome, Exchange
from adaexplore.core.judging.status import Status
from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.step import NodeState, StepRecord
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import NO_SCORE, Verdict
from tests.verdicts import make_verdict


def _passed(speedup: float) -> Verdict:
    return make_verdict(
        status=Status.PASSED,
        metadata={"hardware": "GPU", "correctness_trials": "(5 / 5)"},
        runtime_ms=2.0,
        runtime_stats={"mean": 2.0, "fast_p": speedup, "baseline_time": 2.0 * speedup},
    )


def _make_step(
    step: int,
    *,
    kind: StepKind = StepKind.LARGE,
    parent_id: int = 0,
    context_ids: tuple[int, ...] = (),
    elite_ids: tuple[int, ...] = (),
    verdict: Verdict | None = None,
    outcome: DraftOutcome = DraftOutcome.WRITTEN,
    source: str = "import torch\n",
    exchanges: tuple[Exchange, ...] | None = None,
    evaluated: bool = True,
    usage: Usage = Usage(100, 40, 20, 1.5, 0.01),  # noqa: B008 - frozen
) -> StepRecord:
    if exchanges is None:
        exchanges = (Exchange("large", f"prompt {step}", f"reply {step}"),)
    score = NO_SCORE if verdict is None else verdict.score
    node = NodeState(
        plan=Plan(step, kind, parent_id, context_ids, elite_ids),
        depth=1,
        visits=1,
        total_reward=0.1 + 0.2,
        max_reward=0.3,
        score=score,
        total_nodes=step + 1,
        global_best_node_id=step,
        global_best_score=score,
    )
    return StepRecord(node, Draft(outcome, source, exchanges, usage), verdict, evaluated)


def _make_root() -> StepRecord:
    root = NodeState(
        Plan(0, StepKind.DUMMY_ROOT, 0), 0, 0, 0.0, 0.0, NO_SCORE, total_nodes=1, global_best_node_id=0,
        global_best_score=NO_SCORE,
    )  # fmt: skip
    return StepRecord(root, Draft(DraftOutcome.WRITTEN, "", (), Usage()), None, False)


@pytest.fixture
def passed() -> Callable[[float], Verdict]:
    return _passed


@pytest.fixture
def make_step() -> Callable[..., StepRecord]:
    return _make_step


@pytest.fixture
def root() -> StepRecord:
    return _make_root()


@pytest.fixture
def small_step() -> StepRecord:
    """Return a small step with a repair, whose review holds CRLF and unusual characters."""
    return _make_step(
        2,
        kind=StepKind.SMALL,
        parent_id=1,
        context_ids=(1,),
        verdict=_passed(1.5),
        exchanges=(
            Exchange("review", "review this\r\n", "too slow \ud83d é"),
            Exchange("small", "now edit", "<old_str_1>"),
            Exchange("repair", "no match", "<old_str_1>x"),
        ),
        source="x = 1\r\ny = 2\n",
    )
