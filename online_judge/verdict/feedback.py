"""Feedback for the model that wrote a kernel: short, about its own code, always in the same words."""

from __future__ import annotations

from collections.abc import Sequence

from adaexplore.core.judging.flags import Flag
from adaexplore.core.judging.parts import FailureText
from adaexplore.core.judging.status import Stage, Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import Tf32Policy, Tier
from online_judge.checks.facts.findings import Difference, Failure
from online_judge.checks.facts.precision import Error, Graded, Limit
from online_judge.common.texts import clip, scrub

MAX_BYTES = 1500
_MESSAGE_BYTES = 850
_HEAD_BYTES = 200
_FRAME_BYTES = 150
_NOTE_BYTES = 300
_REPEATED = "A second call with the same inputs gave another result"
_ROUNDED: dict[Tier, str] = {"tf32": "TF32", "half": "bfloat16"}


def of_failure(failure: Failure, folder: str) -> Verdict:
    """Explain a failure; paths in ``folder`` are shortened."""
    message = scrub(failure.message, folder).strip("\n")
    place = f" in line {failure.frames[-1].line}" if failure.frames else ""
    stage = "" if failure.stage.value == failure.status.value else f" during {failure.stage.value}"
    head = f"{failure.status.value}{stage}{place}: {failure.name.rpartition('.')[2]}"
    lines = [clip(head, _HEAD_BYTES)]
    lines += [
        clip(f"  line {frame.line}, {frame.function[:60]}: {frame.code}", _FRAME_BYTES)
        for frame in failure.frames[-4:]
    ]
    marked = failure.status is Status.COMPILE  # Triton's message ends with the line, the caret and the reason
    if message:
        budget = _budget(failure.status.row.advice) - sum(len(line.encode()) + 1 for line in lines)
        lines.append(clip(message, min(budget, _MESSAGE_BYTES), keep_end=marked))
    last = failure.frames[-1].code if failure.frames else ""
    text = "\n".join(part for part in (last[:160], clip(message, 400, keep_end=marked)) if part)
    if failure.status.module_imported:
        facts = FailureText(runtime_error_name=failure.name, runtime_error=text)
    else:
        facts = FailureText(compilation_error_name=failure.name, compilation_error=text)
    return _failed(failure.status, lines, facts)


def of_crash(how: str, stage: Stage) -> Verdict:
    text = f"the process ended {how} during {stage.value}"
    return _failed(Status.CRASH, [text], FailureText(runtime_error_name="crash", runtime_error=text))


def of_memory(stage: Stage) -> Verdict:
    text = f"the process ran out of the host memory that it may have during {stage.value}"
    facts = FailureText(runtime_error_name="MemoryError", runtime_error=text)
    return _failed(Status.OUT_OF_MEMORY, [text], facts)


def of_repeat(wrong: Verdict) -> Verdict:
    """Explain that a candidate was right once, then wrong on the same inputs (``wrong``)."""
    text = wrong.feedback.rpartition("\nNext:")[0]
    head = f"{Status.NONDETERMINISTIC.value}: {_REPEATED}"
    facts = wrong.failure.model_copy(update={"correctness_issue": _REPEATED})
    return _failed(Status.NONDETERMINISTIC, [head, text], facts)


def of_unequal_calls(found: Error, limit: Limit) -> Verdict:
    """Explain that equal calls differ by more than the precision that they reach."""
    line = (
        f"{Status.NONDETERMINISTIC.value}: {_REPEATED}: they differ by {found.rms:.2g} (rms) and "
        f"{found.peak:.2g} (at most) of the output's standard deviation; rounding explains {limit.rms:.2g}"
    )
    return _failed(Status.NONDETERMINISTIC, [line], FailureText(correctness_issue=_REPEATED))


def of_far_off(error: float) -> Verdict:
    """Explain outputs that are far off, although a loose tolerance lets them pass."""
    line = (
        f"{Status.WRONG_VALUE.value}: with other weights or inputs of the same kind the error is {error:.2g} "
        "of the output's standard deviation, more than rounding explains; elsewhere the tolerance hides it"
    )
    facts = FailureText(correctness_issue="Output mismatch, hidden by the tolerance")
    return _failed(Status.WRONG_VALUE, [line], facts)


def of_tier(grade: Graded, needed: Tier, tf32: Tf32Policy) -> Verdict:
    """Explain outputs within the tolerance; ``grade`` is of the least precise one."""
    error, limit = grade.error, grade.limits[needed]
    based = grade.emulated and needed in _ROUNDED
    basis = f", 1.3 times the error of the reference with {_ROUNDED[needed]} operands" if based else ""
    line = (
        f"{Status.WRONG_VALUE.value}: the outputs are less precise than tier {needed}: "
        f"error {error.rms:.2g} (rms), {error.noise:.2g} (less a common factor), {error.peak:.2g} (largest); "
        f"the limit is {limit.rms:.2g} (rms), {min(limit.noise, limit.rms):.2g} (less a common factor), "
        f"{limit.peak:.2g} (largest){basis}; all in standard deviations of the output"
    )
    how = "operands in the precision of the inputs"
    if needed == "strict":
        how = "operands in the precision of the inputs, use input_precision='ieee' in tl.dot,"
    elif tf32 != "off":
        how = "operands of tl.dot in float32 (TF32 is precise enough)"
    lines = [line, f"likely cause: {_cause(grade, limit)}"]
    advice = f"Keep {how} and accumulate in float32."
    facts = FailureText(correctness_issue=f"Precision {grade.tier}, needed {needed}")
    return _failed(Status.WRONG_VALUE, lines, facts, advice)


def _cause(grade: Graded, limit: Limit) -> str:
    if grade.error.rms <= limit.rms and grade.error.noise <= limit.noise:
        return "few elements are far off, the others are precise: look at borders, masks and cancellation"
    if grade.tier == "tf32":
        return "products in TF32, the default of tl.dot for float32 operands, or operands in float16"
    if grade.tier == "half":
        return "operands or intermediate results in bfloat16"
    return (
        "sums or intermediate results in half precision, or a wrong value that the tolerance hides; "
        "operands in bfloat16 alone are more precise"
    )


def of_integrity(rejects: Sequence[Flag]) -> Verdict:
    lines = [f"{Status.INTEGRITY.value}: {flag.id}: {flag.evidence}" for flag in rejects]
    issue = clip(", ".join(flag.id for flag in rejects), 400)
    facts = FailureText(correctness_issue=issue, correctness_issue_name="integrity")
    return _failed(Status.INTEGRITY, lines, facts)


def of_timeout(limit_s: int, stage: Stage) -> Verdict:
    """Explain that a candidate took too long; ``error`` is v1's wording."""
    line = f"timeout during {stage.value}: not done after {limit_s} s"
    error = f"Kernel execution timeout: exceeded {limit_s}s runtime limit"
    return _failed(Status.TIMEOUT, [line], FailureText(error=error, stage=stage.value))


def of_issue(status: Status, issue: str) -> Verdict:
    return _failed(status, [f"{status.value}: {clip(issue, 800)}"], _issue(clip(issue, 400)))


def _issue(text: str) -> FailureText:
    return FailureText(correctness_issue=text, correctness_issue_name="correctness_issue")


def of_difference(found: Difference, output: str) -> Verdict:
    """Explain wrong values; ``output`` names the output, such as ``output 1``."""
    share = 100.0 * found.wrong / max(found.total, 1)
    status = Status.NONFINITE if found.nonfinite else Status.WRONG_VALUE
    if found.nonfinite:
        facts = _issue("Output is not finite exactly where the reference is")
    else:
        facts = FailureText(
            max_difference=(f"{found.largest:.6f}",),
            avg_difference=(f"{found.average:.6f}",),
            correctness_issue="Output mismatch",
        )
    examples = [
        f"  [{', '.join(map(str, each.index))}] got {each.got}, want {each.want}" for each in found.examples
    ]
    lines = [
        f"{status.value}: {found.wrong} of {found.total} elements of {output} ({share:.4g} %) are wrong, "
        f"largest error {found.largest:.6g}, mean error {found.average:.6g}",
        *([f"pattern: {found.pattern}"] if found.pattern else []),
        "first wrong elements:",
        *examples,
    ]
    return _failed(status, lines, facts)


def _failed(status: Status, lines: list[str], facts: FailureText, advice: str = "") -> Verdict:
    advice = advice or status.row.advice
    body = clip("\n".join(lines), _budget(advice))
    return Verdict(status=status, failure=facts, feedback=f"{body}\nNext: {advice}")


def _budget(advice: str) -> int:
    """Return how many bytes of feedback are left beside the advice."""
    return MAX_BYTES - len(advice.encode()) - 8


def of_hidden(status: Status, facts: FailureText) -> Verdict:
    """Explain a failure on a hidden workload; reveal only the status, and ``facts``."""
    line = f"{status.value}: it fails on a hidden workload, whose inputs are not shown"
    return _failed(status, [line], facts, status.row.hidden_advice)


def with_line(line: str, text: str) -> str:
    line = clip(line, _NOTE_BYTES)
    return f"{line}\n{clip(text, MAX_BYTES - len(line.encode()) - 1)}" if text else line
