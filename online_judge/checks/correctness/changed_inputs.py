"""Does a call change its inputs?"""

from collections.abc import Iterator
from typing import ClassVar

from online_judge.checks.check import Check, FlagKind, Found, Observation, Severity


class InputsChanged(Observation):
    MEASURED_BY: ClassVar = "evaluator.evaluation.Evaluation._change"
    result_changes: bool = False  # whether the reference gives another result for the changed inputs
    timed_call: int | None = None  # index of the timed call; None for a call of the correctness trials


INPUTS_CHANGED = FlagKind(
    "inputs_changed",
    Severity.REJECT,
    "a call changed its inputs so that the reference's result differs",
    "discard the kernel",
)
INPUTS_WRITTEN = FlagKind(
    "inputs_written",
    Severity.SUSPECT,
    "a call, or which timed call, changed its inputs; the reference's result stays the same",
    "give it copies of the inputs",
)


def _find(fact: InputsChanged) -> Iterator[Found]:
    if fact.timed_call is not None:
        yield INPUTS_WRITTEN.found(f"timed call {fact.timed_call} changed its inputs")
    elif fact.result_changes:
        yield INPUTS_CHANGED.found("a call changed its inputs so that the reference's result differs")
    else:
        yield INPUTS_WRITTEN.found("a call changed its inputs; the reference's result stays the same")


CHECK = Check((INPUTS_CHANGED, INPUTS_WRITTEN), (InputsChanged,), _find)
