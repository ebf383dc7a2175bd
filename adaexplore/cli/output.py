"""Output for people: as wide as the terminal at most, plain lines without a terminal."""

from __future__ import annotations

import shutil
import sys
from typing import NoReturn

from tqdm import tqdm

from adaexplore.report.text import wrapped


def columns() -> int | None:
    """Return the columns of the terminal or of ``COLUMNS``; None (no limit) without either."""
    return shutil.get_terminal_size(fallback=(0, 0)).columns or None


def show(text: str) -> None:
    """Print prose, wrapped to the terminal."""
    print(wrapped(text, columns()))  # noqa: T201


def progress(total: int | None, unit: str, initial: int = 0) -> tqdm[NoReturn]:
    """Show a progress bar on stderr; without a terminal, print a plain line every 10 %."""
    if sys.stderr.isatty():
        return tqdm(total=total, unit=unit, initial=initial, dynamic_ncols=True)
    return _Lines(total=total, unit=unit, initial=initial, bar_format=_LINE, mininterval=0, miniters=1)


_LINE = "{percentage:.0f} %, {n_fmt} of {total_fmt} {unit}s, {elapsed}{postfix}"


class _Lines(tqdm):  # type: ignore[type-arg]  # it takes no type at run time
    """A progress bar that prints lines; one that redraws itself would fill logs with carriage returns."""

    _told: int | None = None

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        """Print a line if at least 10 % was done since the last one."""
        tenth = int(10 * self.n // self.total) if self.total else 0
        if self._told is not None and tenth > self._told:
            self.fp.write(f"{self}\n")
        self._told = tenth

    def clear(self, nolock: bool = False) -> None:
        """Keep the printed lines."""

    def close(self) -> None:
        """Close without a final line."""
        self.disable = True
