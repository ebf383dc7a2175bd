"""Text edits in models' replies: old and new text in numbered tags, applied all or none."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from itertools import accumulate, pairwise

_TAG = re.compile(r"<(/?)(old|new)_str_([0-9]{1,6})>")
_COUNTED_PLACES = 20
_SHOWN_LINES = 8
_LINES_BEFORE = 2
_SHOWN_PLACES = 3
_COMPARED_LINES = 2000
_COMPARED_OLD_LINES = 100
_COMPARED_CHARS = 200


@dataclass(frozen=True)
class Edit:
    """Replace ``old``, which occurs once in the source, by ``new``."""

    index: int  # the number in the tags
    old: str  # the text to replace, outer newlines stripped
    new: str | None  # its replacement, outer newlines stripped; None if the reply lacks it


class EditError(ValueError):
    """An edit cannot be applied, so none was.

    Attributes:
        index: the number of the edit; None when there are no edits at all.
        reason: the fault in one line.
        nearest: the most similar lines of the source, each as ``<number>: <line>``; may be "".
    """

    def __init__(self, index: int | None, reason: str, nearest: str = "") -> None:
        super().__init__(reason if index is None else f"edit {index}: {reason}")
        self.index = index
        self.reason = reason
        self.nearest = nearest


def parse_edits(reply: str) -> tuple[Edit, ...]:
    """Parse the edits of a model's reply, in order, in time linear in its length.

    An edit is ``<old_str_n>...</old_str_n>``, then only whitespace, then
    ``<new_str_n>...</new_str_n>`` with the same n; text around edits is ignored. A complete old text
    without a new text of its number is returned with ``new`` None, so that applying fails
    instead of skipping a part of the edits.
    """
    tags = list(_TAG.finditer(reply))
    adjacent = [not reply[a.end() : b.start()].strip() for a, b in pairwise(tags)]
    closing = _closing_tags(tags)
    edits: list[Edit] = []
    opened: dict[str, re.Match[str]] = {}
    position = 0
    while position < len(tags):
        tag = tags[position]
        slash, side, number = tag.groups()
        position += 1
        if side == "new":
            continue
        if not slash:
            opened[number] = tag
        elif number in opened:
            old = reply[opened.pop(number).end() : tag.start()].strip("\r\n")
            follows = position < len(tags) and adjacent[position - 1]
            replaced = follows and tags[position].groups() == ("", "new", number)
            end = closing[position] if replaced else None
            if end is None:
                edits.append(Edit(int(number), old, None))
                continue
            new = reply[tags[position].end() : tags[end].start()].strip("\r\n")
            edits.append(Edit(int(number), old, new))
            position = end + 1
    paired = {edit.index for edit in edits if edit.new is not None}
    return tuple(edit for edit in edits if edit.new is not None or edit.index not in paired)


def apply_edits(source: str, edits: Sequence[Edit]) -> str:
    """Apply all ``edits`` to ``source``, each to the result of the previous ones.

    The old text must occur exactly once: as written; if it is not found, with blanks at line
    ends ignored; if still not found, without its outer blank lines.

    Raises:
        EditError: there are no edits, or one of them cannot be applied.
    """
    if not edits:
        raise EditError(None, "no edits in the reply")
    for edit in edits:
        start, end = _find(source, edit)
        source = f"{source[:start]}{edit.new}{source[end:]}"
    return source


def _closing_tags(tags: Sequence[re.Match[str]]) -> list[int | None]:
    """Return for each tag the position of the next closing tag of its kind and number."""
    following: dict[tuple[str, str], int] = {}
    closing: list[int | None] = [None] * len(tags)
    for position in range(len(tags) - 1, -1, -1):
        slash, side, number = tags[position].groups()
        closing[position] = following.get((side, number))
        if slash:
            following[side, number] = position
    return closing


def _find(source: str, edit: Edit) -> tuple[int, int]:
    if not edit.old.strip():
        raise EditError(edit.index, "empty old text")
    if edit.new is None:
        raise EditError(edit.index, f"no <new_str_{edit.index}> after </old_str_{edit.index}>")
    lines = [line.rstrip() for line in edit.old.split("\n")]
    places = (
        _exact_places(source, edit.old)
        or _places_by_line(source, lines)
        or _places_by_line(source, "\n".join(lines).strip("\n").split("\n"))
    )
    if len(places) == 1:
        return places[0]
    if not places:
        raise EditError(edit.index, "old text not found", _nearest(source, lines))
    many = f"{_COUNTED_PLACES} or more" if len(places) == _COUNTED_PLACES else str(len(places))
    shown = [source.count("\n", 0, start) for start, _ in places[:_SHOWN_PLACES]]
    all_lines = source.split("\n")
    nearest = "\n".join(_numbered(all_lines, line, line + 1) for line in shown)
    raise EditError(edit.index, f"old text is ambiguous, found {many} times", nearest)


def _exact_places(source: str, old: str) -> list[tuple[int, int]]:
    """Return the positions of ``old``, including overlapping ones."""
    places: list[tuple[int, int]] = []
    start = source.find(old)
    while start >= 0 and len(places) < _COUNTED_PLACES:
        places.append((start, start + len(old)))
        start = source.find(old, start + 1)
    return places


def _places_by_line(source: str, lines: Sequence[str]) -> list[tuple[int, int]]:
    """Return the positions of ``lines``, with blanks at line ends ignored.

    The first line may start within a line of the source; the last one must reach the line's end.
    """
    originals = source.split("\n")
    stripped = [line.rstrip() for line in originals]
    text = "\n".join(stripped)
    starts = list(accumulate((len(line) + 1 for line in stripped), initial=0))
    original_starts = list(accumulate((len(line) + 1 for line in originals), initial=0))

    def original(position: int) -> int:
        line = bisect_right(starts, position) - 1
        return original_starts[line] + position - starts[line]

    return [
        (original(start), original(end))
        for start, end in _exact_places(text, "\n".join(lines))
        if text[end : end + 1] in ("", "\n") and (lines[0] or text[start - 1 : start] in ("", "\n"))
    ]


def _nearest(source: str, old_lines: Sequence[str]) -> str:
    """Return the part of ``source`` most similar to ``old_lines``, a few lines around the first difference.

    It is aligned at the longest run of equal lines, ignoring indentation; without equal lines, at the line
    most similar to the longest old one.
    """
    lines = source.split("\n")
    there = [line.strip()[:_COMPARED_CHARS] for line in lines[:_COMPARED_LINES]]
    wanted = [line.strip()[:_COMPARED_CHARS] for line in old_lines[:_COMPARED_OLD_LINES]]
    if not any(there) or not any(wanted):
        return ""
    run = SequenceMatcher(None, there, wanted, autojunk=False).find_longest_match()
    first = run.a - run.b
    if not any(wanted[run.b : run.b + run.size]):
        anchor = max(range(len(wanted)), key=lambda position: len(wanted[position]))
        likeness = SequenceMatcher(b=wanted[anchor], autojunk=False)
        first = max(range(len(there)), key=lambda position: _ratio(likeness, there[position])) - anchor
    first = max(first, 0)
    pairs = zip(there[first:], wanted, strict=False)
    difference = next((offset for offset, (line, old) in enumerate(pairs) if line != old), 0)
    shown = max(first + difference - _LINES_BEFORE, 0)
    return _numbered(lines, shown, shown + _SHOWN_LINES)


def _ratio(likeness: SequenceMatcher[str], line: str) -> float:
    likeness.set_seq1(line)
    return likeness.ratio()


def _numbered(lines: Sequence[str], first: int, last: int) -> str:
    return "\n".join(f"{number}: {line.rstrip()}" for number, line in enumerate(lines[first:last], first + 1))
