"""Do the claimed times of calls explain the evaluator's clock?"""

from collections.abc import Iterator
from typing import ClassVar

from online_judge.checks.check import Check, FlagKind, Found, Observation, Severity


class UnevenCalls(Observation):
    """A few calls of each block took much longer by their events."""

    MEASURED_BY: ClassVar = "evaluator.timing.measurement._score"

    median_ms: float
    mean_ms: float
    counted_ms: float


class CallsDoneTogether(Observation):
    """Calls take much longer in blocks of one call each than in blocks of many."""

    MEASURED_BY: ClassVar = "evaluator.timing.measurement._by_single_calls"

    call_ms: float  # that would count without them
    single_ms: float


class ClocksDisagree(Observation):
    """Calls take longer by the evaluator's clock than by their events."""

    MEASURED_BY: ClassVar = "evaluator.timing.measurement._score"

    gpu_ms: float  # of a call by events
    wall_ms: float  # of a call by the evaluator's clock
    graph_ms: float | None  # of a call within a replayed graph; None if the calls cannot be captured
    copy_ms: float  # of copying the outputs of one call
    counted_ms: float  # the time that counts
    explained: bool  # whether the replayed graph confirms the events
    proven: bool  # whether neither a slow host nor others on the GPU explain the difference


CLOCK_MISMATCH = FlagKind(
    "clock_mismatch",
    Severity.REJECT,
    "milliseconds of a call by events, on the wall and in a replayed graph",
    "discard: the claimed times leave work out",
    of_measurement=True,
)
LAUNCH_BOUND = FlagKind(
    "launch_bound",
    Severity.NOTE,
    "milliseconds of a call by events, on the wall and in a replayed graph, or median and mean of a block, "
    "or of a call alone; which count",
    "read `e2e_ms`; larger inputs or a CUDA graph may help; if calls alone count, look for work that is done "
    "for later calls",
    of_measurement=True,
)


def _find(fact: UnevenCalls | CallsDoneTogether | ClocksDisagree) -> Iterator[Found]:
    match fact:
        case UnevenCalls():
            both = f"{fact.median_ms:.4g} ms is the median, {fact.mean_ms:.4g} ms the mean"
            evidence = f"calls of one block differ: {both}; {fact.counted_ms:.4g} ms count"
            yield LAUNCH_BOUND.found(evidence)
        case CallsDoneTogether():
            blocks = f"{fact.call_ms:.4g} ms in blocks of many calls"
            yield LAUNCH_BOUND.found(f"{blocks}, {fact.single_ms:.4g} ms alone; the latter count")
        case ClocksDisagree():
            yield _disagree(fact)


def _disagree(fact: ClocksDisagree) -> Found:
    """Flag clocks that disagree; work was hidden only if that is proven."""
    measured = f"{fact.gpu_ms:.4g} ms a call by events, {fact.wall_ms:.4g} ms on the wall"
    if fact.graph_ms is None:
        return LAUNCH_BOUND.found(f"{measured}, and it cannot be captured: {fact.counted_ms:.4g} ms count")
    evidence = f"{measured}, {fact.graph_ms:.4g} ms in a replayed graph"
    if fact.explained:
        return LAUNCH_BOUND.found(f"{evidence}; {fact.counted_ms:.4g} ms count")
    kind = CLOCK_MISMATCH if fact.proven else LAUNCH_BOUND
    return kind.found(f"{evidence}, {fact.copy_ms:.4g} ms of it for copies")


CHECK = Check[UnevenCalls | CallsDoneTogether | ClocksDisagree](
    (CLOCK_MISMATCH, LAUNCH_BOUND), (UnevenCalls, CallsDoneTogether, ClocksDisagree), _find
)
