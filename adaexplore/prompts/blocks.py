"""The parts that prompts share, each made in one place."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.core.differences import differences_between
from adaexplore.core.profile import Profile
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import DtypeName, Tf32Policy, Tier
from adaexplore.prompts.render import render

FEEDBACK_LIMIT = 1500
"""Most characters of a judge's explanation shown per kernel."""
FLAGS_LIMIT = 300
"""Most characters of what makes a correct kernel suspect."""

_TF32 = {
    "paper": "IEEE float32 (TF32 off); `tl.dot` may use TF32",
    "off": "IEEE float32 (TF32 off), for your kernels too",
    "on": "TF32 allowed, for your kernels too",
}
_ACCURACY: dict[Tier, str] = {
    "strict": "as accurate as float32 arithmetic in IEEE precision (no TF32, no half precision)",
    "tf32": "as accurate as float32 arithmetic with TF32 products (no half precision)",
    "half": "as accurate as {dtype} arithmetic that accumulates in float32",
    "legacy": "",
}
"""What a tier asks beyond the tolerance."""
_NATIVE = "as the module makes them, float32 where it says nothing else"
_NATIVE_ACCURACY = "; outputs in half precision: as accurate as that arithmetic accumulating in float32"
_EXPLANATIONS = ("feedback", "compilation_error", "runtime_error", "correctness_issue", "error")


@dataclass(frozen=True)
class JudgeFacts:
    """What the prompts say about the judge; owned by the settings, never written into templates.

    ``tolerance`` is absolute and relative; the counts are per evaluation. ``shows_flags`` tells the model
    what makes a correct kernel suspect and which program was known already. ``tunes`` says that the
    judge sweeps the numbers that a candidate declares.
    """

    gpu_name: str
    gpu_architecture: str
    dtype: DtypeName
    tf32: Tf32Policy
    tolerance: float
    trials: int
    timed_runs: int
    warmup_runs: int
    tier: Tier = "legacy"
    shows_flags: bool = False
    tunes: bool = False


@dataclass(frozen=True)
class ShownKernel:
    """A candidate as the model gets to see it.

    Attributes:
        source: its code.
        verdict: None where it was never judged.
        repeated: whether an equal program had been judged before, so that its verdict was reused.
        profile: where a call of it spends its time, if that was asked.
    """

    source: str
    verdict: Verdict | None
    repeated: bool = False
    profile: Profile | None = None


def contract_block(facts: JudgeFacts) -> str:
    """What an answer must hold and how it is judged."""
    return render(
        "contract",
        trials=facts.trials,
        tolerance=f"{facts.tolerance:g}",
        accuracy=accuracy_sentence(facts),
        timed_runs=facts.timed_runs,
        warmup_runs=facts.warmup_runs,
    )


def judge_sentence(facts: JudgeFacts) -> str:
    """How closely it is judged."""
    return render(
        "judge", trials=facts.trials, tolerance=f"{facts.tolerance:g}", accuracy=accuracy_sentence(facts)
    )


def hardware_block(facts: JudgeFacts) -> str:
    """GPU and precision."""
    return render(
        "hardware",
        gpu_name=facts.gpu_name,
        gpu_architecture=facts.gpu_architecture,
        dtype=_NATIVE if facts.dtype == "native" else facts.dtype,
        tf32=_TF32[facts.tf32],
    )


def rules_block(rules: Sequence[str]) -> str:
    """The skill memory, one rule a line, or nothing."""
    if not rules:
        return ""
    return render("rules", rules="\n".join(f"- {rule}" for rule in rules)) + "\n\n"


def accuracy_sentence(facts: JudgeFacts) -> str:
    """What outputs must hold besides the tolerance, as a sentence with a space before it, or nothing."""
    native = facts.dtype == "native"
    wanted = _ACCURACY[facts.tier].format(dtype="half-precision" if native else facts.dtype)
    if native and facts.tier in ("strict", "tf32"):
        wanted += _NATIVE_ACCURACY
    return f" Results must also be {wanted}." if wanted else ""


def kernel_blocks(kernels: Sequence[ShownKernel], facts: JudgeFacts) -> str:
    """Candidates numbered from 0, code before findings."""
    return "\n\n".join(kernel_block(index, kernel, facts) for index, kernel in enumerate(kernels))


def kernel_block(index: int, kernel: ShownKernel, facts: JudgeFacts, code: str = "") -> str:
    """One candidate: its code, in full unless ``code`` tells it, then what the judge found."""
    found = [finding(kernel.verdict)]
    if facts.tunes:
        found.append(tuned_line(kernel.verdict))
    if facts.shows_flags:
        found.append(flags_line(kernel.verdict))
        found.append(render("repeated") if kernel.repeated else "")
    return render(
        "kernel",
        index=index,
        code=code or code_block(kernel.source),
        verdict="\n".join(line for line in found if line),
    )


def code_block(source: str) -> str:
    """A whole file."""
    source = source.rstrip("\n")
    return render("code", fence=fence_for(source), source=source)


def changes_block(base: int, old: str, new: str) -> str:
    """A file told by its differences from ``old``, the file of kernel ``base``."""
    changes = differences_between(old.rstrip("\n"), new.rstrip("\n"))
    return render("changes", base=base, fence=fence_for(changes), changes=changes or "none")


def tuned_line(verdict: Verdict | None) -> str:
    """The numbers that the judge's sweep chose, or ""."""
    values = verdict.tuned if verdict is not None else None
    if not values:
        return ""
    return render("tuned", values=", ".join(f"{name} = {value!r}" for name, value in values.items()))


def flags_line(verdict: Verdict | None) -> str:
    """What makes a correct candidate suspect, in one line of at most ``FLAGS_LIMIT`` characters, or ""."""
    if verdict is None or not verdict.correct or not verdict.suspect_flags:
        return ""
    found = [f"{flag.id}: {flag.evidence}" if flag.evidence else flag.id for flag in verdict.suspect_flags]
    line = " ".join(("flags: " + "; ".join(found)).split())
    return line if len(line) <= FLAGS_LIMIT else line[: FLAGS_LIMIT - 3] + "..."


def fence_for(source: str) -> str:
    """A fence that does not occur in ``source``."""
    fence = "```"
    while fence in source:
        fence += "`"
    return fence


def finding(verdict: Verdict | None) -> str:
    """The judge's finding: the status and measured times in one line, then the explanation."""
    if verdict is None:
        return "not judged"
    if verdict.correct:
        if verdict.speedup is None or verdict.runtime_ms is None:
            return verdict.status.value
        reference_ms = verdict.runtime_ms * verdict.speedup
        return (
            f"{verdict.status.value}, {verdict.speedup:.3f}x "
            f"({verdict.runtime_ms:.4g} ms, reference {reference_ms:.4g} ms)"
        )
    explanation = explain(verdict)
    return f"{verdict.status.value}\n{explanation}" if explanation else verdict.status.value


def explain(verdict: Verdict) -> str:
    """Why a candidate failed, at most ``FEEDBACK_LIMIT`` characters; "" where the judge said nothing.

    A judge of this project says it in ``feedback``; the others' tracebacks are cut from the front,
    since their last lines name the error.
    """
    for key in _EXPLANATIONS:
        text = verdict.metadata.get(key)
        if isinstance(text, str) and text.strip():
            text = text.strip()
            return text if len(text) <= FEEDBACK_LIMIT else "..." + text[-(FEEDBACK_LIMIT - 3) :]
    return ""
