"""How commands print for people: no wider than the terminal, and plain lines where there is none."""

from __future__ import annotations

import shutil
import sys
from typing import NoReturn

from tqdm import tqdm

from adaexplore.report.text import wrapped


def columns() -> int | None:
    """Return the columns of the terminal or of ``COLUMNS``; None, no limit, where there is neither."""
    return shutil.get_terminal_size(fallback=(0, 0)).columns or None


def show(text: str) -> None:
    """Print prose, wrapped to the terminal."""
    print(wrapped(text, columns()))  # noqa: T201


def progress(total: int | None, unit: str, initial: int = 0) -> tqdm[NoReturn]:
    """Show a bar on stderr; where that is no terminal, a plain line each time another 10 % is done."""
    if sys.stderr.isatty():
        return tqdm(total=total, unit=unit, initial=initial, dynamic_ncols=True)
    return _Lines(total=total, unit=unit, initial=initial, bar_format=_LINE, mininterval=0, miniters=1)


_LINE = "{percentage:.0f} %, {n_fmt} of {total_fmt} {unit}s, {elapsed}{postfix}"


class _Lines(tqdm):  # type: ignore[type-arg]  # it takes no type at run time
    """Prints lines instead of a bar that redraws itself, which would fill a log with carriage returns."""

    _told: int | None = None

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Print a line if another tenth is done since the last one, or since the beginning."""
        tenth = int(10 * self.n // self.total) if self.total else 0
        if self._told is not None and tenth > self._told:
            self.fp.write(f"{self}\n")
        self._told = tenth

    def clear(self, nolock: bool = False) -> None:
        """Leave what is printed."""

    def close(self) -> None:
        """End without a last line."""
        self.disable = True
