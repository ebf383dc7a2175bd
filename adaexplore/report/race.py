"""Compare two kernels of one problem by their speedups over the same reference."""

from __future__ import annotations

import math
from dataclasses import dataclass

from adaexplore.core.verdict import Interval, Verdict


@dataclass(frozen=True)
class Race:
    """The speed ratio of two kernels."""

    ratio: float  # speedup of the first / speedup of the second
    interval: Interval | None  # 95 % interval of the ratio; None if one of the kernels has no interval

    def inverse(self) -> Race:
        turned = None if self.interval is None else Interval(1 / self.interval.high, 1 / self.interval.low)
        return Race(1 / self.ratio, turned)


def race(first: Verdict, second: Verdict) -> Race | None:
    """Compare two verdicts; None if one of the kernels is not correct or was not timed.

    The errors of the two measurements are independent, so the widths of their intervals, on a logarithmic
    scale, add in squares.
    """
    if not first.speedup or not second.speedup:
        return None
    ratio = first.speedup / second.speedup
    intervals = (first.speedup_interval, second.speedup_interval)
    known = [each for each in intervals if each is not None and 0 < each.low <= each.high]
    if len(known) < len(intervals):
        return Race(ratio, None)
    width = math.hypot(*(math.log(each.high / each.low) / 2 for each in known))
    return Race(ratio, Interval(ratio * math.exp(-width), ratio * math.exp(width)))


def race_text(first: str, second: str, result: Race | None) -> str:
    """Describe which kernel is faster, with the interval."""
    if result is None:
        return f"{first} and {second} cannot be compared: both must be correct and timed on a GPU"
    if result.ratio < 1:
        first, second, result = second, first, result.inverse()
    if result.interval is None:
        return f"{first} is {result.ratio:.3f}x as fast as {second}"
    sure = f"95% interval {result.interval.low:.3f} to {result.interval.high:.3f}"
    if result.interval.low <= 1:
        return f"no difference between {first} and {second} can be measured ({result.ratio:.3f}x, {sure})"
    return f"{first} is {result.ratio:.3f}x as fast as {second} ({sure})"
