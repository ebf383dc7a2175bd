"""Validate a problem."""

from dataclasses import dataclass

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


MAX_ELEMENTS = 50_000_000
"""Maximum elements of inputs, weights and outputs together."""
MAX_CALL_MS = 2000.0
"""Maximum time of one call of the reference."""


@dataclass(frozen=True)
class Finding:
    """The result of validating a problem; ``reason`` is empty if it is usable."""

    reason: str = ""  # why it is unusable, in a fixed wording for counts
    detail: str = ""  # the reason with the details of this problem
    graph: str = ""  # the judge's hash of its computation
    elements: int = 0  # number of elements of inputs, weights and outputs
    call_ms: float = 0.0  # time of one call


def examine(judge: Judge, source: str, dtype: DtypeName, *, margin: bool = True) -> Finding:
    """Validate ``source`` here and on the judge.

    With ``margin`` trivial answers must fail clearly, so that they fail with another judge's inputs too.

    Raises:
        JudgeError: the judge failed.
    """
    if not source.strip():
        return Finding("no code", "the reply holds no complete file that defines Model")
    problem = module_problem(source)
    if problem is not None:
        return Finding("no problem module", problem)
    return judged(judge.examine_problem(source, dtype), margin=margin)


def judged(report: ProblemReport, *, margin: bool = True) -> Finding:
    """Return the result of a judge's report on the problem; see :func:`examine`."""
    if not report.ok or report.traits is None:
        large = report.reason.startswith(_TOO_LARGE)
        return Finding("too large" if large else "fails", report.reason)
    traits = report.traits
    reason = detail = ""
    flags = [flag for flag in traits.flags if flag != _HARMLESS and (margin or flag != _NEAR)]
    if flags:
        reason, detail = _FLAGS.get(flags[0], flags[0]), ", ".join(flags)
    elif traits.elements > MAX_ELEMENTS:
        reason, detail = "too large", f"{traits.elements} elements, at most {MAX_ELEMENTS}"
    elif traits.call_ms > MAX_CALL_MS:
        reason, detail = "too slow", f"{traits.call_ms:.0f} ms a call, at most {MAX_CALL_MS:.0f}"
    return Finding(reason, detail, traits.graph, traits.elements, traits.call_ms)
