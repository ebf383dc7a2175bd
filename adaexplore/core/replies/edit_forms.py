"""Read the edits of an answer in the forms that models write besides numbered tags."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import count
from typing import Any

from adaexplore.core.replies.sources import json_values
from adaexplore.core.text.edits import Edit, EditError, apply_edits, parse_edits

_PLAIN_TAG = re.compile(r"<(/?)(old|new)_str>")
_BETWEEN = re.compile(r"(</old_str(_\d{1,6}|)>)[^<>]{0,200}(<new_str\2>)")
_TAGS = re.compile(r"<old_str(?:_\d{1,6})?>|</new_str(?:_\d{1,6})?>")
_KEYS = (("old_str", "new_str"), ("old_string", "new_string"), ("old", "new"), ("search", "replace"))
_JSON_KEY = re.compile(r'"(?:old\w{0,7}|search)":|<old_str|@@|SEARCH')
_HEADER = ("--- ", "+++ ", "diff --git ", "index ", "new file mode ")
_BULLET = re.compile(r"[-+] \S")
_DIFF = re.compile(r"\b(?:diff|patch)\b", re.IGNORECASE)
_SIDES = (" ", "+", "-", "\\")
_SIMILAR = 0.8
_COMPARED = 2000


@dataclass(frozen=True)
class Edits:
    """The edits of an answer.

    start, end: their place in the answer.
    """

    edits: tuple[Edit, ...]  # in order; never empty
    start: int
    end: int


def edits_in(answer: str) -> Edits | None:
    """Return the edits of ``answer``; None without any.

    They are in JSON, in tags, in search-and-replace marks, or in a unified diff.
    """
    return _in_json(answer) or _in_tags(answer) or _in_lines(answer)


def apply_last(source: str, edits: Sequence[Edit]) -> str:
    """Apply ``edits``, all or none; if the answer corrects its edits, the corrected ones.

    Raises:
        EditError: as :func:`~adaexplore.core.text.edits.apply_edits`.
    """
    try:
        return apply_edits(source, edits)
    except EditError:
        last = _corrected(edits)
        if last is None:
            raise
    return apply_edits(source, last)


def _corrected(edits: Sequence[Edit]) -> Sequence[Edit] | None:
    """Return the last edits that restart the numbers and replace all earlier ones; None if there are none."""
    restarts = [place for place in range(1, len(edits)) if edits[place].index <= edits[place - 1].index]
    if not restarts:
        return None
    earlier, last = edits[: restarts[-1]], edits[restarts[-1] :]
    by_number = {edit.index: edit for edit in last}
    same = all(edit.index in by_number and _alike(edit, by_number[edit.index]) for edit in earlier)
    return last if same else None


def _alike(one: Edit, other: Edit) -> bool:
    return SequenceMatcher(None, one.old[:_COMPARED], other.old[:_COMPARED]).quick_ratio() >= _SIMILAR


def _in_tags(answer: str) -> Edits | None:
    tagged = _BETWEEN.sub(r"\1\n\3", answer)
    edits = parse_edits(tagged)
    if not edits:
        numbers = {"old": count(1), "new": count(1)}
        latest = {"old": 0, "new": 0}

        def numbered(tag: re.Match[str]) -> str:
            slash, side = tag.groups()
            if not slash:
                latest[side] = next(numbers[side])
            return f"<{slash}{side}_str_{latest[side]}>"

        edits = parse_edits(_PLAIN_TAG.sub(numbered, tagged)) if _PLAIN_TAG.search(tagged) else ()
    if not edits:
        return None
    tags = [*_TAGS.finditer(answer)]
    made = tuple(replace(edit, old=_bare(edit.old), new=edit.new and _bare(edit.new)) for edit in edits)
    return Edits(made, tags[0].start(), tags[-1].end())


def _bare(text: str) -> str:
    """Return ``text`` without a fence around it."""
    first, *inner = text.strip().split("\n")
    ticks = first[:3]
    if ticks not in ("```", "~~~") or not inner or set(inner[-1].strip()) != {ticks[0]}:
        return text
    return "\n".join(inner[:-1])


def _in_lines(answer: str) -> Edits | None:
    """Read search-and-replace marks, else the hunks of a unified diff."""
    lines = answer.split("\n")
    for reader in (_replacements, _hunks):
        found = [*reader(lines)]
        if found:
            starts = [0]
            for line in lines:
                starts.append(starts[-1] + len(line) + 1)
            edits = tuple(
                Edit(number, "\n".join(old).strip("\n"), "\n".join(new).strip("\n"))
                for number, (old, new, _, _) in enumerate(found, 1)
            )
            return Edits(edits, starts[found[0][2]], min(starts[found[-1][3]], len(answer)))
    return None


def _in_json(answer: str) -> Edits | None:
    """Read objects with an old and a new text, or edits in a string of a JSON value."""
    found: list[Edit] = []
    waiting = json_values(answer)[::-1] if _JSON_KEY.search(answer) else []
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict) and (pair := _old_and_new(value)):
            found.append(Edit(len(found) + 1, pair[0].strip("\n"), pair[1].strip("\n")))
        elif isinstance(value, dict | list):
            waiting += reversed([*value.values()] if isinstance(value, dict) else value)
        elif isinstance(value, str) and (inner := _in_tags(value) or _in_lines(value)):
            found += inner.edits
    return Edits(tuple(found), 0, len(answer)) if found else None


def _old_and_new(value: dict[str, Any]) -> tuple[str, str] | None:
    for old, new in _KEYS:
        match value.get(old), value.get(new):
            case str(before), str(after):
                return before, after
    return None


_Found = tuple[list[str], list[str], int, int]


def _replacements(lines: Sequence[str]) -> Iterator[_Found]:
    """Yield old lines, new lines, first and last line of each search-and-replace block."""
    old: list[str] = []
    new: list[str] = []
    side: list[str] | None = None
    start = 0
    for number, line in enumerate(lines):
        if re.match(r"<{5,9} ?SEARCH\b", line):
            old, new, start = [], [], number
            side = old
        elif side is old and re.fullmatch(r"={5,9}\s*", line):
            side = new
        elif side is new and side is not None and re.match(r">{5,9} ?REPLACE\b", line):
            yield old, new, start, number + 1
            side = None
        elif side is not None:
            side.append(line)


def _hunks(lines: Sequence[str]) -> Iterator[_Found]:
    """Yield old lines, new lines, first and last line of each hunk; the counts in its header are ignored."""
    old: list[str] = []
    new: list[str] = []
    start: int | None = None
    fenced = False
    for number, line in enumerate([*lines, "@@"]):
        fence = line.startswith(("```", "~~~"))
        fenced ^= fence
        prose = not fenced and (line[:1] not in ("", *_SIDES) or _BULLET.match(line) is not None)
        if start is not None and (fence or prose or line.startswith(("@@", *_HEADER))):
            if old != new:
                yield old, new, start, number
            start = None
        if line.startswith(("@@", "+++ ")) or (fence and fenced and _DIFF.search(line)):
            old, new, start = [], [], number
        elif start is not None and not line.startswith("\\"):
            text = line[1:] if line[:1] in _SIDES else line
            if line[:1] != "+":
                old.append(text)
            if line[:1] != "-":
                new.append(text)
