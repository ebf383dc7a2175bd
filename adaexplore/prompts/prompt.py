"""A prompt, split by how long its parts stay the same."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class Prompt:
    """One message; its parts are joined without separators.

    Attributes:
        fixed: the same for the whole run.
        task: the same for one task.
        growing: parts at the start of later steps' prompts too, except perhaps the last one.
        now: the part of this request alone.
        plain: the whole text without its measured figures; None if it has none.
    """

    now: str
    fixed: str = ""
    task: str = ""
    growing: tuple[str, ...] = ()
    plain: str | None = None

    @property
    def text(self) -> str:
        return "".join((self.fixed, self.task, *self.growing, self.now))

    @property
    def cuts(self) -> tuple[int, ...]:
        """Offsets at which the parts before ``now`` end, ascending."""
        ends = accumulate(len(part) for part in (self.fixed, self.task, *self.growing))
        return tuple(sorted({end for end in ends if end > 0}))
