"""Order and answer of a sweep; imports no torch."""

from dataclasses import dataclass, field
from typing import Literal

from adaexplore.core.text.dispatch import ShapeClass

DECLARED = 0
"""Number of the declared configuration; others: :func:`adaexplore.core.text.tunables.combination`."""


@dataclass(frozen=True)
class SweepTerms:
    budget_s: float  # seconds for the sweep, without waiting for the device and for cores
    left_out: tuple[int, ...] = ()  # configurations that failed before
    careful: bool = False  # whether to try them one by one, to find the one that breaks the process
    screened: bool = False  # whether to end at once if the declared one's outputs are wrong


@dataclass
class Swept:
    ready: dict[int, float] = field(default_factory=dict)  # wall milliseconds of a call, of those that ran
    ms: dict[int, float] = field(default_factory=dict)  # milliseconds of each, by its last rating
    ranking: list[int] = field(default_factory=list)  # rated ones, the best first
    failed: dict[int, str] = field(default_factory=dict)  # reasons of those that did not run, or were wrong
    suspects: list[int] = field(default_factory=list)  # those of which one broke the process
    parts_s: dict[str, float] = field(default_factory=dict)  # by part: ``compile``, ``time``, ``check``
    finished: bool = False
    wrong: bool = False  # ended early: the declared one is wrong with the reference's weights
    shape: ShapeClass = ()  # of the workload's inputs
    kind: Literal["sweep"] = "sweep"

    @property
    def spent_s(self) -> float:
        return sum(self.parts_s.values())

    def spend(self, part: str, seconds: float) -> None:
        self.parts_s[part] = self.parts_s.get(part, 0.0) + max(seconds, 0.0)
