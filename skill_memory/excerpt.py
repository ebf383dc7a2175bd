"""The part of a candidate that shows a failure."""

from __future__ import annotations

from skill_memory.construct import offending_line
from skill_memory.signature import writable

_SHORT_CHARS = 300
_ERROR_CHARS = 400


def shortest_excerpt(source: str, error: str, line: int | None = None) -> str:
    """The offending line alone; "" where it is not known."""
    pointed = offending_line(error)
    if pointed:
        return pointed[:_SHORT_CHARS]
    lines = source.splitlines()
    if line is not None and 1 <= line <= len(lines):
        return writable(lines[line - 1].strip())[:_SHORT_CHARS]
    first = error.strip().partition("\n")[0].strip()
    return first[:_SHORT_CHARS] if any(text.strip() == first for text in lines) else ""


def reason(error: str) -> str:
    """The last line of an error that says something."""
    lines = [text.strip() for text in error.splitlines() if text.strip(" ^~\t")]
    return lines[-1][-_ERROR_CHARS:] if lines else ""
