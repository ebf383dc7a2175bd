"""The parts that prompts share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.core.draft import ShownKernel
from adaexplore.core.environment import Environment, FactName, TritonFacts
from adaexplore.core.judging.status import Status
from adaexplore.core.text.differences import differences_between
from adaexplore.core.text.figures import without_figures
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import Direction, DtypeName, Tf32Policy, Tier
from adaexplore.prompts.render import render

FEEDBACK_LIMIT = 1500
"""Maximum characters of a judge's explanation per kernel."""
FLAGS_LIMIT = 300
"""Maximum characters of a correct kernel's suspect flags."""
_MOST_WORKLOADS = 12

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
_GRADIENTS = (
    " Gradients are judged and timed too: the judge calls `forward`, then the backward pass with random "
    "upstream gradients, compares the outputs and the gradients of every floating input and every parameter, "
    "and times both passes together. So `forward` must build an autograd graph: put your kernels into a "
    "`torch.autograd.Function` with a `backward` of its own, and keep each parameter of `Model` a parameter."
)
_BACKWARD = " What is to become faster is the backward pass."
_NATIVE = "as the module makes them, float32 where it says nothing else"
_NATIVE_ACCURACY = "; outputs in half precision: as accurate as that arithmetic accumulating in float32"


@dataclass(frozen=True)
class JudgeFacts:
    """Facts about the judge in prompts; they come from the settings, never from templates.

    ``tolerance`` is absolute and relative; the counts are per evaluation. With ``shows_flags`` prompts show
    suspect flags, known programs and each workload. With ``tunes`` the judge sweeps the numbers that a
    candidate declares. ``environment`` is the judge's own answer; prompts leave out ``omitted`` facts.
    ``direction`` says whether gradients are judged. Without ``figures`` a prompt has no measured figures, for
    comparisons.
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
    environment: Environment | None = None
    omitted: frozenset[FactName] = frozenset()
    direction: Direction = "forward"
    figures: bool = True

    def measured(self, text: str) -> str:
        """Return ``text``, which states measured figures, with or without them."""
        return text if self.figures else without_figures(text)

    @property
    def triton(self) -> TritonFacts | None:
        """Facts about the judge's Triton; None if the judge did not state them."""
        return None if self.environment is None else self.environment.triton


def contract_block(facts: JudgeFacts) -> str:
    """Return the requirements of an answer and how it is judged."""
    return render(
        "contract",
        trials=facts.trials,
        tolerance=f"{facts.tolerance:g}",
        accuracy=accuracy_sentence(facts),
        timed_runs=facts.timed_runs,
        warmup_runs=facts.warmup_runs,
    )


def judge_sentence(facts: JudgeFacts) -> str:
    """Return how strictly an answer is judged."""
    return render(
        "judge", trials=facts.trials, tolerance=f"{facts.tolerance:g}", accuracy=accuracy_sentence(facts)
    )


def hardware_values(facts: JudgeFacts) -> dict[str, str]:
    """Return the template variables for GPU and precision."""
    return {
        "gpu_name": facts.gpu_name,
        "gpu_architecture": facts.gpu_architecture,
        "dtype": _NATIVE if facts.dtype == "native" else facts.dtype,
        "tf32": _TF32[facts.tf32],
    }


def rules_block(rules: Sequence[str]) -> str:
    """Return the skill memory, one rule per line; "" without rules."""
    if not rules:
        return ""
    return render("rules", rules="\n".join(f"- {rule}" for rule in rules)) + "\n\n"


def accuracy_sentence(facts: JudgeFacts) -> str:
    """Return the accuracy required besides the tolerance, as a sentence after a space; "" for none."""
    wanted = wanted_accuracy(facts)
    return (f" Results must also be {wanted}." if wanted else "") + gradients_sentences(facts)


def gradients_sentences(facts: JudgeFacts) -> str:
    """Return how gradients are judged, after a space; "" if they are not."""
    return {"forward": "", "backward": _GRADIENTS + _BACKWARD, "both": _GRADIENTS}[facts.direction]


def wanted_accuracy(facts: JudgeFacts) -> str:
    """Return how accurate results must be by the tier; "" for ``legacy``."""
    native = facts.dtype == "native"
    wanted = _ACCURACY[facts.tier].format(dtype="half-precision" if native else facts.dtype)
    if native and facts.tier in ("strict", "tf32"):
        wanted += _NATIVE_ACCURACY
    return wanted


def kernel_blocks(kernels: Sequence[ShownKernel], facts: JudgeFacts) -> str:
    """Return blocks of candidates, numbered from 0, code before findings."""
    return "\n\n".join(kernel_block(index, kernel, facts) for index, kernel in enumerate(kernels))


def kernel_block(index: int, kernel: ShownKernel, facts: JudgeFacts, code: str = "") -> str:
    """Return one candidate: its code, or ``code`` in its place, then the judge's finding."""
    found = [facts.measured(finding(kernel.verdict))]
    if facts.tunes:
        found.append(tuned_line(kernel.verdict))
    if facts.shows_flags:
        found.append(facts.measured(flags_line(kernel.verdict)))
        found.append(facts.measured(workloads_text(kernel.verdict)))
        found.append(render("repeated") if kernel.repeated else "")
    return render(
        "kernel",
        index=index,
        code=code or code_block(kernel.source),
        verdict="\n".join(line for line in found if line),
    )


def code_block(source: str) -> str:
    source = source.rstrip("\n")
    return render("code", fence=fence_for(source), source=source)


def changes_block(base: int, old: str, new: str) -> str:
    """Return a file as its differences from ``old``, the file of kernel ``base``."""
    changes = differences_between(old.rstrip("\n"), new.rstrip("\n"))
    return render("changes", base=base, fence=fence_for(changes), changes=changes or "none")


def tuned_line(verdict: Verdict | None) -> str:
    """Return the numbers that the judge's sweep chose, or ""."""
    values = verdict.tuned_values if verdict is not None else None
    if not values:
        return ""
    return render("tuned", values=", ".join(f"{name} = {value!r}" for name, value in values.items()))


def flags_line(verdict: Verdict | None) -> str:
    """Return a correct candidate's suspect flags in one line (at most ``FLAGS_LIMIT`` characters), or ""."""
    if verdict is None or not verdict.correct or not verdict.suspect_flags:
        return ""
    found = [f"{flag.id}: {flag.evidence}" if flag.evidence else flag.id for flag in verdict.suspect_flags]
    line = " ".join(("flags: " + "; ".join(found)).split())
    return line if len(line) <= FLAGS_LIMIT else line[: FLAGS_LIMIT - 3] + "..."


def fence_for(source: str) -> str:
    """Return a fence that does not occur in ``source``."""
    fence = "```"
    while fence in source:
        fence += "`"
    return fence


def finding(verdict: Verdict | None) -> str:
    """Return the judge's finding: status and times in one line, then the explanation."""
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
    """Return why a candidate failed, in at most ``FEEDBACK_LIMIT`` characters; "" without feedback.

    A judge of this project gives ``feedback``. Tracebacks of other judges are cut at the front, since
    their last lines name the error.
    """
    failure = verdict.failure
    errors = (failure.compilation_error, failure.runtime_error, failure.correctness_issue, failure.error)
    for text in map(str.strip, (verdict.feedback, *errors)):
        if text:
            return text if len(text) <= FEEDBACK_LIMIT else "..." + text[-(FEEDBACK_LIMIT - 3) :]
    return ""


def workloads_text(verdict: Verdict | None) -> str:
    """Return a line for each shown workload and one for the worst; "" for a single workload.

    Of many workloads, failed and slowest ones are listed, in the problem's order.
    """
    shown = [] if verdict is None else [each for each in verdict.workloads if not each.hidden]
    if verdict is None or not shown:
        return ""
    unchecked = [each for each in shown if each.status is Status.NOT_CHECKED]
    ranked = sorted(
        (each for each in shown if each not in unchecked),
        key=lambda each: (each.correctness, each.speedup or 0.0),
    )
    first = [*ranked, *unchecked][:_MOST_WORKLOADS]
    listed = [each for each in shown if each in first]
    rows = [f"- {each.summary}" for each in listed]
    if len(shown) > len(listed):
        rows.append(f"- {len(shown) - len(listed)} more")
    if verdict.correct and verdict.worst_workload is not None:
        rows.append(f"Too slow on {verdict.worst_workload.name}: {verdict.worst_workload.why}")
    return render("workloads", rows="\n".join(rows))
