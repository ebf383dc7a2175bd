"""Measured figures in a text: the numbers that differ from one measurement to the next."""

from __future__ import annotations

import re
from itertools import zip_longest

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

    Args:
        earlier: the text to compare with.
        now: the text of today.
        plain: ``now`` without its measured figures. Lines that are the same in both have none and must
            be equal; so the numbers of source code count.

    Returns:
        the line, counted from 1; None if there is no such line.
    """
    lines = zip_longest(earlier.split("\n"), now.split("\n"), plain.split("\n"))
    for number, (old, new, bare) in enumerate(lines, 1):
        if old != new and (old is None or bare == new or without_figures(old) != bare):
            return number
    return None
