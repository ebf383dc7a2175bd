"""What a sweep is asked and what it answers; imports no torch."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from adaexplore.core.text.dispatch import ShapeClass

DECLARED = 0
"""Number of the configuration as written; others: :func:`adaexplore.core.text.tunables.combination`."""


@dataclass(frozen=True)
class SweepTerms:
    budget_s: float  # seconds for all of it, waiting for the device and for cores left out
    left_out: tuple[int, ...] = ()  # those that have failed before
    careful: bool = False  # whether to try them one by one, to know which one breaks the process
    screened: bool = False  # whether to end at once where the outputs of the declared one are wrong


@dataclass
class Swept:
    ready: dict[int, float] = field(default_factory=dict)  # those that ran, wall milliseconds of a call
    ms: dict[int, float] = field(default_factory=dict)  # milliseconds by the last rating of each
    ranking: list[int] = field(default_factory=list)  # those that were rated, the best first
    failed: dict[int, str] = field(default_factory=dict)  # why others did not run, or were wrong
    suspects: list[int] = field(default_factory=list)  # those of which one broke the process
    parts_s: dict[str, float] = field(default_factory=dict)  # by part: ``compile``, ``time``, ``check``
    finished: bool = False
    wrong: bool = False  # it ended early: the declared one is wrong with the reference's weights
    shape: ShapeClass = ()  # of the workload's inputs
    kind: Literal["sweep"] = "sweep"

    @property
    def spent_s(self) -> float:
        return sum(self.parts_s.values())

    def spend(self, part: str, seconds: float) -> None:
        self.parts_s[part] = self.parts_s.get(part, 0.0) + max(seconds, 0.0)
