"""Are the outputs of timed calls right, and written in time?"""

from collections.abc import Iterator
from typing import ClassVar

from online_judge.checks.check import Check, FlagKind, Found, Observation, Severity


class TimedOutputWrong(Observation):
    MEASURED_BY: ClassVar = "evaluator.timing.interleaved.InterleavedTiming._compare"
    round: int  # of the interleaved timing
    call: int | None  # index of the call; None if elements of all calls of the round were compared
    wrong: int  # wrong elements, of ``total``
    total: int
    largest: float  # largest absolute difference


class TimedOutputLate(Observation):
    """The output of a timed call was written after the candidate's answer."""

    MEASURED_BY: ClassVar = "evaluator.timing.interleaved.InterleavedTiming._round"

    round: int
    call: int


TIMED_OUTPUT_WRONG = FlagKind(
    "timed_output_wrong",
    Severity.REJECT,
    "how many elements of which timed call are wrong and the largest error, or that the output was written "
    "after the answer",
    "discard the kernel",
)


def _find(fact: TimedOutputWrong | TimedOutputLate) -> Iterator[Found]:
    call = f"timed call {fact.call}" if fact.call is not None else "the timed calls"
    of_round = f"{call} of round {fact.round}"
    if isinstance(fact, TimedOutputLate):
        yield TIMED_OUTPUT_WRONG.found(f"{of_round} was written after its answer")
    else:
        wrong = f"{fact.wrong} of {fact.total} elements of {of_round} are wrong"
        yield TIMED_OUTPUT_WRONG.found(f"{wrong}, largest error {fact.largest:.4g}")


CHECK = Check[TimedOutputWrong | TimedOutputLate](
    (TIMED_OUTPUT_WRONG,), (TimedOutputWrong, TimedOutputLate), _find
)
