"""Ids of the directions that the search may give to sibling steps."""

from dataclasses import dataclass

FREE = ""
"""No direction: the model chooses."""


@dataclass(frozen=True)
class Directions:
    """The directions of one task, in their order."""

    large: tuple[str, ...] = ()  # for new kernels
    small: tuple[str, ...] = ()  # for edits of a correct kernel
    repair: tuple[str, ...] = ()  # for edits of a wrong one
