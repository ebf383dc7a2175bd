"""Status and metadata for each way in which the evaluation of a candidate can fail."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.core.judging.status import Stage, Status
from online_judge.checks.facts import endings
from online_judge.checks.facts.findings import Failure
from online_judge.verdict import feedback

PROTOCOL = 14
"""Increased whenever the same request may get another verdict, so that older cached verdicts are not used."""


@dataclass(frozen=True)
class Explained:
    """The status of an ending; v1's keys and the feedback for it are in the metadata."""

    status: Status
    metadata: dict[str, object]


def explain(ending: endings.Ending, folder: str) -> Explained:
    """Decide status and feedback of an ending; paths in ``folder`` are shortened."""
    match ending:
        case endings.Passed():
            return Explained(Status.PASSED, {})
        case endings.Raised(failure=failure):
            return Explained(failure.status, feedback.of_failure(failure, folder))
        case endings.WrongForm(part="device"):
            message = f"an output is on {ending.got}, expected on {ending.expected}"
            failure = Failure(Status.LAUNCH, Stage.FORWARD, "DeviceMismatch", message)
            return Explained(failure.status, feedback.of_failure(failure, folder))
        case endings.WrongForm():
            status = Status.WRONG_DTYPE if ending.part == "dtype" else Status.WRONG_SHAPE
            return Explained(status, feedback.of_issue(status, _form_issue(ending)))
        case endings.WrongValue(difference=difference, output=output, name=name):
            status = Status.NONFINITE if difference.nonfinite else Status.WRONG_VALUE
            name = name or ("the output" if output is None else f"output {output}")
            return Explained(status, feedback.of_difference(difference, name))
        case endings.OtherWeights():
            issue = "the output is that of other weights than the module has now"
            return Explained(Status.WRONG_VALUE, feedback.of_issue(Status.WRONG_VALUE, issue))
        case endings.WrongAgain(wrong=wrong):
            return Explained(Status.NONDETERMINISTIC, feedback.of_repeat(explain(wrong, folder).metadata))
        case endings.UnequalCalls(error=error, limit=limit):
            return Explained(Status.NONDETERMINISTIC, feedback.of_unequal_calls(error, limit))
        case endings.FarOff(error=far_off):
            return Explained(Status.WRONG_VALUE, feedback.of_far_off(far_off))
        case endings.BelowTier(grade=grade, needed=needed, tf32=tf32):
            return Explained(Status.WRONG_VALUE, feedback.of_tier(grade, needed, tf32))


def _form_issue(wrong: endings.WrongForm) -> str:
    if wrong.part == "structure":
        return f"Output structure mismatch: expected {wrong.expected}, got {wrong.got} (T is a tensor)"
    name = "Output" if wrong.output is None else f"Output {wrong.output}"
    return f"{name} {wrong.part} mismatch: expected {wrong.expected}, got {wrong.got}"
