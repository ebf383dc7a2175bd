"""Test lists: the problems of a run, per line a level and its problems.

    2              all problems of level 2
    2 5            one problem
    2 1-50,77-78   ranges and single problems

Blank lines and text after ``#`` are ignored.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from adaexplore.core.errors import TaskError
from adaexplore.core.files.inputs import input_text

_LINE = re.compile(r"(\d+)(?:\s+(\S.*))?")
_PART = re.compile(r"(\d+)(?:\s*-\s*(\d+))?")
_LARGEST_ID = 1_000_000


@dataclass(frozen=True)
class Selection:
    """One line of a test list."""

    level: int
    problem_ids: tuple[int, ...] | None  # ids in the order given, or None for all problems of the level
    # the list and the line in it, or the key of the configuration; for messages
    origin: str = field(default="", compare=False)


def read_test_list(path: Path) -> list[Selection]:
    """Read the test list at ``path``.

    Raises:
        TaskError: the file cannot be read, selects nothing or has invalid lines; the message names them all.
    """
    return parse_test_list(input_text(path, "test list", TaskError, "check test_list_path"), str(path))


def parse_test_list(text: str, name: str) -> list[Selection]:
    """Parse a test list; messages call it ``name``."""
    selections, problems = [], []
    for number, line in enumerate(text.splitlines(), start=1):
        content = line.split("#", 1)[0].strip()
        if not content:
            continue
        try:
            selections.append(_parse_line(content, f"{name}:{number}"))
        except ValueError as error:
            problems.append(f"{name}:{number}: {error}")
    if problems:
        raise TaskError("\n".join(problems))
    if not selections:
        raise TaskError(f"test list {name} selects nothing; write lines such as '2' or '2 1-50,77'")
    return selections


def _parse_line(content: str, origin: str) -> Selection:
    match = _LINE.fullmatch(content)
    if match is None:
        raise ValueError(f"expected 'LEVEL' or 'LEVEL IDS', got '{content}'")
    level, ids = match.groups()
    if ids is None:
        return Selection(int(level), None, origin)
    return Selection(int(level), tuple(dict.fromkeys(_parse_ids(ids))), origin)


def _parse_ids(ids: str) -> Iterator[int]:
    for part in ids.split(","):
        match = _PART.fullmatch(part.strip())
        if match is None:
            raise ValueError(f"expected ids such as 5 or 1-50,77, got '{ids}'")
        first = int(match[1])
        last = first if match[2] is None else int(match[2])
        if first > last:
            raise ValueError(f"range {first}-{last} runs backwards")
        if last > _LARGEST_ID:
            raise ValueError(f"problem id {last} is too large")
        yield from range(first, last + 1)
