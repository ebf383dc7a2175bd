"""Undo of :func:`adaexplore.core.text.differences.differences_between`."""

from __future__ import annotations

import re

_HUNK = re.compile(r"@@ -(\d+)")


def apply_differences(old: str, differences: str) -> str:
    """Return the ``new`` of :func:`differences_between`; lines before the first hunk are ignored."""
    lines, made, position = old.split("\n"), list[str](), 0
    for line in differences.split("\n"):
        if hunk := _HUNK.match(line):
            start = int(hunk[1]) - 1
            made += lines[position:start]
            position = start
        elif line.startswith("+"):
            made.append(line[1:])
        elif line.startswith("-"):
            position += 1
        elif line.startswith(" "):
            made.append(line[1:])
            position += 1
    return "\n".join([*made, *lines[position:]])
