"""One text told by its differences from another, letter for letter."""

from __future__ import annotations

import re
from difflib import unified_diff

_HUNK = re.compile(r"@@ -(\d+)")


def differences_between(old: str, new: str) -> str:
    """The hunks of a unified diff from ``old`` to ``new``, without file names; "" where they are equal."""
    _, _, *hunks = [*unified_diff(old.split("\n"), new.split("\n"), lineterm="")] or ("", "")
    return "\n".join(hunks)


def apply_differences(old: str, differences: str) -> str:
    """The ``new`` that :func:`differences_between` was given; lines before the first hunk are ignored."""
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
