"""Measured figures in a text: the numbers that differ from one measurement to the next."""

import re
from itertools import groupby, zip_longest

_DECIMAL = r"\d+\.\d+(?:e[+-]?\d+)?|\d+e[+-]?\d+"
_WITH_UNIT = r"\d+(?= ?(?:%|[mun]?s\b))"
_FIGURE = re.compile(rf"(?<![\w.])(?:{_DECIMAL}|{_WITH_UNIT})(?!\.?\d|\.\w)(?=x\b|[mun]?s\b|\W|$)")


def without_figures(text: str) -> str:
    """Replace each figure by ``#``: a decimal number, or a whole number of percent or of (parts of) seconds.

    Other whole numbers stay: lines, indices, sizes and counts.
    """
    return _FIGURE.sub("#", text)


def first_difference(earlier: str, now: str, plain: str) -> int | None:
    """Return the number of the first line in which two texts differ in more than measured figures.

    Lines that are the same in ``now`` and ``plain`` state no measured figures and must be equal; so the
    numbers of source code count. The order of neighbouring lines with figures does not count, because
    figures decide it.

    Args:
        earlier: the text to compare with.
        now: the text of today.
        plain: ``now`` without its measured figures.

    Returns:
        the line, counted from 1; None if there is no such line.
    """
    lines = zip_longest(earlier.split("\n"), now.split("\n"), plain.split("\n"))
    for measured, group in groupby(enumerate(lines, 1), lambda each: each[1][1] != each[1][2]):
        block = list(group)
        differing = [number for number, (old, new, _) in block if old != new]
        if measured:
            told = sorted(without_figures(old or "") for _, (old, _, _) in block)
            if told == sorted(bare for _, (_, _, bare) in block):
                continue
            differing = [number for number, (old, _, bare) in block if without_figures(old or "") != bare]
        if differing:
            return differing[0]
    return None
