"""A prompt in the parts that stay the same for how long."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate


@dataclass(frozen=True)
class Prompt:
    """One message; its parts follow each other without anything between them.

    Attributes:
        fixed: the same for the whole run.
        task: the same for one task.
        growing: parts that the prompts of later steps begin with as well, the last one perhaps excepted.
        now: what this request alone says.
    """

    now: str
    fixed: str = ""
    task: str = ""
    growing: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The whole message."""
        return "".join((self.fixed, self.task, *self.growing, self.now))

    @property
    def cuts(self) -> tuple[int, ...]:
        """Offsets at which the parts before ``now`` end, ascending."""
        ends = accumulate(len(part) for part in (self.fixed, self.task, *self.growing))
        return tuple(sorted({end for end in ends if end > 0}))
