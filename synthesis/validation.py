"""Whether a text is a problem worth having."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.core.code_blocks import extract_code
from adaexplore.core.wire import DtypeName, ProblemReport
from adaexplore.judge_client.protocol import Judge
from adaexplore.tasks.module_check import module_problem

_TOO_LARGE = "too large"
_NEAR = "nearly_degenerate"
_HARMLESS = "loose_tolerance"
_FLAGS = {
    "nondeterministic": "nondeterministic",
    "stochastic": "nondeterministic",
    "constant_inputs": "constant input",
    "degenerate_problem": "trivial answer passes",
    _NEAR: "trivial answer passes",
    "nonfinite": "not finite",
    "view_of_input": "view of an input",
    "writes_inputs": "changes its inputs",
}


@dataclass(frozen=True)
class Limits:
    """What a problem may take.

    Attributes:
        elements: of inputs, weights and outputs together.
        call_ms: one call of the reference.
        margin: whether trivial answers must fail clearly, so that another judge's inputs do not decide.
    """

    elements: int = 50_000_000
    call_ms: float = 2000.0
    margin: bool = True


@dataclass(frozen=True)
class Finding:
    """What was found of a problem; ``reason`` is empty where it can be used.

    Attributes:
        reason: why it cannot be used, in words that are counted.
        detail: the same of this one.
        graph: the judge's hash of what it computes.
        elements: of inputs, weights and outputs.
        call_ms: one call.
    """

    reason: str = ""
    detail: str = ""
    graph: str = ""
    elements: int = 0
    call_ms: float = 0.0


def source_of(reply: str) -> str:
    """The module in a reply; empty where there is none."""
    return extract_code(reply) or ""


def examine(judge: Judge, source: str, dtype: DtypeName, limits: Limits) -> Finding:
    """Look at ``source`` here and on the judge.

    Raises:
        JudgeError: the judge failed.
    """
    if not source.strip():
        return Finding("no code", "the reply holds no block of code")
    problem = module_problem(source)
    if problem is not None:
        return Finding("no problem module", problem)
    return judged(judge.examine_problem(source, dtype), limits)


def judged(report: ProblemReport, limits: Limits) -> Finding:
    """What a judge's report says of the problem."""
    if not report.ok or report.traits is None:
        large = report.reason.startswith(_TOO_LARGE)
        return Finding("too large" if large else "fails", report.reason)
    traits = report.traits
    found = Finding(graph=traits.graph, elements=traits.elements, call_ms=traits.call_ms)
    reason = detail = ""
    flags = [flag for flag in traits.flags if flag != _HARMLESS and (limits.margin or flag != _NEAR)]
    if flags:
        reason, detail = _FLAGS.get(flags[0], flags[0]), ", ".join(flags)
    elif traits.elements > limits.elements:
        reason, detail = "too large", f"{traits.elements} elements, at most {limits.elements}"
    elif traits.call_ms > limits.call_ms:
        reason, detail = "too slow", f"{traits.call_ms:.0f} ms a call, at most {limits.call_ms:.0f}"
    return Finding(reason, detail, found.graph, found.elements, found.call_ms)
