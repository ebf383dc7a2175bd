"""Is all work done when the timed stream is done?"""

from collections.abc import Iterator
from typing import ClassVar

from online_judge.checks.check import Check, FlagKind, Found, Observation, Severity


class DeviceWorksOn(Observation):
    """The GPU works on after the timed stream is done."""

    MEASURED_BY: ClassVar = "evaluator.timing.measurement._score"

    tail_ms: float  # for how long, beyond the reference
    claimed_ms: float  # of the calls of a block by their events


class UnjoinedStream(Observation):
    """The calls cannot be captured in a CUDA graph, because work on another stream is not waited for."""

    MEASURED_BY: ClassVar = "evaluator.timing.interleaved.InterleavedTiming._replay"


SIDE_STREAM = FlagKind(
    "side_stream",
    Severity.REJECT,
    "how long the GPU works on after the timed calls, or a stream for which the call does not wait",
    "discard: part of the work is not timed",
)


def _find(fact: DeviceWorksOn | UnjoinedStream) -> Iterator[Found]:
    if isinstance(fact, UnjoinedStream):
        yield SIDE_STREAM.found("work on another stream is not waited for: the calls cannot be captured")
    else:
        calls = f"timed calls of {fact.claimed_ms:.4g} ms"
        yield SIDE_STREAM.found(f"the GPU works on for {fact.tail_ms:.4g} ms after {calls}")


CHECK = Check[DeviceWorksOn | UnjoinedStream]((SIDE_STREAM,), (DeviceWorksOn, UnjoinedStream), _find)
