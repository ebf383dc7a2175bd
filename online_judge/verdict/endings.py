"""Status and metadata for each way in which the evaluation of a candidate can fail."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adaexplore.core.verdict import Status
from online_judge.protocol.endings import (
    BelowTier,
    Ending,
    FarOff,
    OtherWeights,
    Passed,
    Raised,
    UnequalCalls,
    WrongAgain,
    WrongForm,
    WrongValue,
)
from online_judge.protocol.findings import Failure, Stage
from online_judge.verdict import feedback


@dataclass(frozen=True)
class Explained:
    """The status of an ending; v1's keys and the feedback for it are in the metadata."""

    status: Status
    metadata: dict[str, Any]


def explain(ending: Ending, folder: str) -> Explained:
    """Decide status and feedback of an ending; paths in ``folder`` are shortened."""
    match ending:
        case Passed():
            return Explained(Status.PASSED, {})
        case Raised(failure=failure):
            return Explained(failure.status, feedback.of_failure(failure, folder))
        case WrongForm(part="device"):
            message = f"an output is on {ending.got}, expected on {ending.expected}"
            failure = Failure(Status.LAUNCH, Stage.FORWARD, "DeviceMismatch", message)
            return Explained(failure.status, feedback.of_failure(failure, folder))
        case WrongForm():
            status = Status.WRONG_DTYPE if ending.part == "dtype" else Status.WRONG_SHAPE
            return Explained(status, feedback.of_issue(status, _form_issue(ending)))
        case WrongValue(difference=difference):
            status = Status.NONFINITE if difference.nonfinite else Status.WRONG_VALUE
            return Explained(status, _of_values(ending))
        case OtherWeights():
            issue = "the output is that of other weights than the module has now"
            return Explained(Status.WRONG_VALUE, feedback.of_issue(Status.WRONG_VALUE, issue))
        case WrongAgain(wrong=wrong):
            return Explained(Status.NONDETERMINISTIC, feedback.of_repeat(explain(wrong, folder).metadata))
        case UnequalCalls(error=error, limit=limit):
            return Explained(Status.NONDETERMINISTIC, feedback.of_unequal_calls(error, limit))
        case FarOff(error=far_off):
            return Explained(Status.WRONG_VALUE, feedback.of_far_off(far_off))
        case BelowTier(grade=grade, needed=needed, tf32=tf32):
            return Explained(Status.WRONG_VALUE, feedback.of_tier(grade, needed, tf32))


def _of_values(wrong: WrongValue) -> dict[str, Any]:
    output = "the output" if wrong.output is None else f"output {wrong.output}"
    return feedback.of_difference(wrong.difference, output)


def _form_issue(wrong: WrongForm) -> str:
    if wrong.part == "structure":
        return f"Output structure mismatch: expected {wrong.expected}, got {wrong.got} (T is a tensor)"
    name = "Output" if wrong.output is None else f"Output {wrong.output}"
    return f"{name} {wrong.part} mismatch: expected {wrong.expected}, got {wrong.got}"
