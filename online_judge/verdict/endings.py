"""Status, texts and feedback for each way in which the evaluation of a candidate can fail."""

from __future__ import annotations

from adaexplore.core.judging.status import Stage, Status
from adaexplore.core.verdict import Verdict
from online_judge.checks.facts import endings
from online_judge.checks.facts.findings import Failure
from online_judge.verdict import feedback

PROTOCOL = 15
"""Increased whenever the same request may get another verdict, so that older cached verdicts are not used."""


def explain(ending: endings.Ending, folder: str) -> Verdict:
    """Decide status and texts of an ending, and nothing else; paths in ``folder`` are shortened."""
    match ending:
        case endings.Passed():
            return Verdict(status=Status.PASSED)
        case endings.Raised(failure=failure):
            return feedback.of_failure(failure, folder)
        case endings.WrongForm(part="device"):
            message = f"an output is on {ending.got}, expected on {ending.expected}"
            failure = Failure(Status.LAUNCH, Stage.FORWARD, "DeviceMismatch", message)
            return feedback.of_failure(failure, folder)
        case endings.WrongForm():
            status = Status.WRONG_DTYPE if ending.part == "dtype" else Status.WRONG_SHAPE
            return feedback.of_issue(status, _form_issue(ending))
        case endings.WrongValue(difference=difference, output=output, name=name):
            name = name or ("the output" if output is None else f"output {output}")
            return feedback.of_difference(difference, name)
        case endings.OtherWeights():
            issue = "the output is that of other weights than the module has now"
            return feedback.of_issue(Status.WRONG_VALUE, issue)
        case endings.WrongAgain(wrong=wrong):
            return feedback.of_repeat(explain(wrong, folder))
        case endings.UnequalCalls(error=error, limit=limit):
            return feedback.of_unequal_calls(error, limit)
        case endings.FarOff(error=far_off):
            return feedback.of_far_off(far_off)
        case endings.BelowTier(grade=grade, needed=needed, tf32=tf32):
            return feedback.of_tier(grade, needed, tf32)


def _form_issue(wrong: endings.WrongForm) -> str:
    if wrong.part == "structure":
        return f"Output structure mismatch: expected {wrong.expected}, got {wrong.got} (T is a tensor)"
    name = "Output" if wrong.output is None else f"Output {wrong.output}"
    return f"{name} {wrong.part} mismatch: expected {wrong.expected}, got {wrong.got}"
