"""Is the baseline's time the same with and without the candidate?"""

from collections.abc import Iterator
from typing import ClassVar

from adaexplore.core.judging.flags import BASELINE_UNCONFIRMED
from online_judge.checks.check import Check, FlagKind, Found, Observation, Severity


class BaselineMoved(Observation):
    """The baseline's time beside the candidate differs from its time without it."""

    MEASURED_BY: ClassVar = "evaluator.timing.measurement._baseline"

    gpu_ms: float  # beside the candidate
    clean_ms: float  # before any candidate was loaded
    after_ms: float | None  # after the timing, with the candidate stopped; None if not measured
    counted_ms: float  # the time that counts


class BaselineUnconfirmed(Observation):
    """The baseline's time without a candidate is unknown: others used the GPU or the host was slow."""

    MEASURED_BY: ClassVar = "evaluator.timing.measurement.measured"


DRIFT = FlagKind(
    "baseline_drift",
    Severity.NOTE,
    "the reference's time beside the candidate and alone (over 3 % apart), and which counts",
    "repeat the measurement where a few percent matter",
    of_measurement=True,
)
UNCONFIRMED = FlagKind(
    BASELINE_UNCONFIRMED,
    Severity.NOTE,
    "other programs used the GPU or the host was slow, so the reference was not timed without a candidate, "
    "and one that the candidate slows goes unseen",
    "repeat the measurement on a GPU that nobody else uses",
    of_measurement=True,
)


def _find(fact: BaselineMoved | BaselineUnconfirmed) -> Iterator[Found]:
    if isinstance(fact, BaselineUnconfirmed):
        yield UNCONFIRMED.found("not timed without a candidate: the GPU or the host was busy")
        return
    without = f"{fact.clean_ms:.4g} ms alone"
    without += "" if fact.after_ms is None else f" before, {fact.after_ms:.4g} ms after it"
    yield DRIFT.found(f"{fact.gpu_ms:.4g} ms beside the candidate, {without}; {fact.counted_ms:.4g} ms count")


CHECK = Check[BaselineMoved | BaselineUnconfirmed](
    (DRIFT, UNCONFIRMED), (BaselineMoved, BaselineUnconfirmed), _find
)
