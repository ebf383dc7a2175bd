"""Ids of the directions that the search may give to steps beside each other."""

from __future__ import annotations

from dataclasses import dataclass

FREE = ""
"""No direction: the model chooses."""


@dataclass(frozen=True)
class Directions:
    """Those offered for one task, in the order in which they are given.

    Attributes:
        large: for new kernels.
        small: for edits of a correct kernel.
        repair: for edits of a wrong one.
    """

    large: tuple[str, ...] = ()
    small: tuple[str, ...] = ()
    repair: tuple[str, ...] = ()
