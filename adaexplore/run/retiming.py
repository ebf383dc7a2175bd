"""Two timings of one program as one verdict."""

from __future__ import annotations

import math
from typing import Any

from adaexplore.core.flags import REJECT, SUSPECT, Flags
from adaexplore.core.verdict import Verdict

_Z = 1.96
"""Standard errors between the middle and an end of a 95 % interval."""
_TIMES = "times_judged"


def combine(first: Verdict, second: Verdict) -> Verdict:
    """What two verdicts on the same program say together; one that did not pass outweighs one that did.

    Speedups and times are averaged as logarithms, weighted by the inverse variance that the speedups'
    intervals tell (evenly where one has none). The interval covers both speedups, so timings that disagree
    widen it. The flags are those of both. All else is the first verdict's.
    """
    if not first.correct:
        return first
    if not second.correct:
        return second
    both = (first, second)
    speedups = [verdict.speedup or 0.0 for verdict in both]
    times = [verdict.runtime_ms or 0.0 for verdict in both]
    if min(speedups + times) <= 0:  # not timed: under the interpreter
        return first
    precisions = [_precision(verdict) for verdict in both]
    half = 0.0 if 0.0 in precisions else _Z / math.sqrt(sum(precisions))
    if 0.0 in precisions:
        precisions = [1.0, 1.0]
    middle, runtime_ms = _mean_log(speedups, precisions), math.exp(_mean_log(times, precisions))
    half = max(half, *(abs(math.log(speedup) - middle) for speedup in speedups))
    stats = first.runtime_stats | {
        "mean": runtime_ms,
        "fast_p": math.exp(middle),
        "ci_low": math.exp(middle - half),
        "ci_high": math.exp(middle + half),
        _TIMES: 2,
    }
    metadata = first.metadata | _flags_of(first, second)
    return first.model_copy(update={"runtime_ms": runtime_ms, "runtime_stats": stats, "metadata": metadata})


def is_combined(verdict: Verdict) -> bool:
    """Whether two timings make it."""
    return _TIMES in verdict.runtime_stats


def _flags_of(first: Verdict, second: Verdict) -> dict[str, Any]:
    """Return what metadata say of the flags of both; the first one's evidence counts."""
    kernel = {flag.id: flag for flag in (*second.flags, *first.flags)}
    gravest_first = sorted(
        kernel.values(), key=lambda flag: (flag.severity != REJECT, flag.severity != SUSPECT)
    )
    problem = {flag.id: flag for flag in (*second.problem_flags, *first.problem_flags)}
    return Flags(tuple(gravest_first), tuple(problem.values())).to_metadata()


def _precision(verdict: Verdict) -> float:
    """Inverse variance of the logarithm of the speedup, 0 where there is no interval."""
    interval = verdict.speedup_interval
    if interval is None or not 0 < interval.low < interval.high:
        return 0.0
    return (2 * _Z / math.log(interval.high / interval.low)) ** 2


def _mean_log(values: list[float], weights: list[float]) -> float:
    total = sum(weight * math.log(value) for weight, value in zip(weights, values, strict=True))
    return total / sum(weights)
