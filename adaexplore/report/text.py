"""Text for people: tables and lines that fit a number of columns."""

import re
import textwrap
from collections.abc import Sequence

_CONTROL = re.compile(r"[^\n\t\x20-\x7e\xa0-\u200d\u2010-\u2027\u202f-\u2065\u206a-\U0010ffff]")
"""Control characters, those that reverse the order of text included."""

NONE = "-"
"""Content of a cell without a figure."""
_LONGEST_RULE = 100
"""Most dashes below the name of a column."""


def text_table(
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    width: int | None = None,
    optional: Sequence[str] = (),
) -> str:
    """Align columns by spaces: numbers to the right, words to the left.

    Args:
        header: names of the columns.
        rows: their cells.
        width: characters per line. A wider table drops columns without a figure, then the
            ``optional`` ones; if it is still too wide, each row becomes a block. None: no limit.
        optional: names of columns that may be dropped, in this order.
    """
    columns = list(range(len(header)))
    empty = [column for column in columns[1:] if all(row[column] in ("", NONE) for row in rows)]
    leave_out = [*empty, *(header.index(name) for name in optional if name in header)]
    while width is not None and (too_wide := _width(header, rows, columns) > width) and leave_out:
        column = leave_out.pop(0)
        columns = [each for each in columns if each != column]
    if width is not None and too_wide:
        return "\n\n".join(_block(header, row) for row in rows)
    return _aligned([header[i] for i in columns], [[row[i] for i in columns] for row in rows])


def wrapped(text: str, width: int | None) -> str:
    """Break lines longer than ``width`` between words; a long word, such as a path, is not broken."""
    return "\n".join(line for given in without_control(text).split("\n") for line in _wrapped(given, width))


def without_control(text: str) -> str:
    """Escape the control characters of a text, which could change the terminal's display."""
    return _CONTROL.sub(lambda found: ascii(found[0])[1:-1], text)


def _wrapped(line: str, width: int | None) -> list[str]:
    if width is None or len(line) <= width:
        return [line]
    indent = line[: len(line) - len(line.lstrip())] + "  "
    return textwrap.wrap(
        line,
        width,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
        replace_whitespace=False,
    )


def _width(header: Sequence[str], rows: Sequence[Sequence[str]], columns: Sequence[int]) -> int:
    widest = (max(len(line[column]) for line in (header, *rows)) for column in columns)
    return sum(widest) + 2 * (len(columns) - 1)


def _block(header: Sequence[str], row: Sequence[str]) -> str:
    """Format a row as a block: the first cell, then one line for each other cell."""
    names = max(map(len, header[1:]), default=0)
    lines = [f"  {name:<{names}}  {cell}" for name, cell in zip(header[1:], row[1:], strict=True)]
    return "\n".join([f"{header[0]}: {row[0]}", *lines])


def _aligned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [list(header), *[list(row) for row in rows]]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    right = [bool(rows) and all(_is_figure(row[column]) for row in rows) for column in range(len(header))]
    lines.insert(1, ["-" * min(width, _LONGEST_RULE) for width in widths])
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def _is_figure(cell: str) -> bool:
    return (
        cell in ("", NONE) or cell.rstrip("%x").lstrip("$").replace(".", "", 1).replace(",", "").isdecimal()
    )


def count_of(number: int, name: str) -> str:
    """Write ``1 task`` or ``2 tasks``."""
    return f"{number} {name}" if number == 1 else f"{number} {name}s"
