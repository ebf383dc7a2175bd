"""Tier C: landscapes designed to mislead a policy, one family for each way to mislead.

A landscape has kinds of structure. A structure starts at some level (the logarithm of a speedup),
climbs by small steps with some probability and size, and ends at a ceiling. A large step that sees other
kernels usually keeps the best one's kind of structure, else it draws one anew.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tool_scripts.search_bench.environment import Outcome

JITTER = 0.01
SLIP = 0.15
"""Scales of meaningless changes and of changes for the worse, in levels."""


@dataclass(frozen=True)
class Structure:
    """A way to write the kernel."""

    share: float  # its weight in draws of large steps
    start: float  # level of a first kernel of it
    ceiling: float  # level that it cannot pass
    rise: float  # probability that a small step climbs
    height: float  # mean number of levels of such a climb


@dataclass(frozen=True)
class Place:
    """A candidate's position; ``ceiling`` is its lineage's, at most its structure's."""

    structure: Structure
    ceiling: float
    level: float | None
    base: float


@dataclass(frozen=True)
class Landscape:
    """An environment of tier C, one family."""

    name: str
    structures: tuple[Structure, ...]  # the choices of large steps
    failure: float = 0.3  # probability that a step's candidate fails
    worse: float = 0.35  # probability that a small step that does not climb loses speed
    keep: float = 0.7  # probability that a large step keeps the structure of the best kernel shown
    # lineages of one structure have ceilings from (1 - spread) of its ceiling to all of it
    spread: float = 0.3
    noise: float = 0.01  # standard deviation of the logarithm of a measured speedup
    lost: float = 0.0  # probability that a step has no result at all
    straggler: float = 0.0  # probability that a model call takes eight times as long

    @property
    def top(self) -> float:
        """The greatest speedup that any structure allows."""
        return math.exp(max(structure.ceiling for structure in self.structures))

    def small(self, parent: Outcome, rng: Random) -> Outcome:
        """Edit ``parent``, or repair it if it failed."""
        place: Place = parent.state
        structure = place.structure
        level = place.base if place.level is None else place.level
        if rng.random() < self.failure:
            return self._outcome(structure, place.ceiling, None, level, rng)
        if place.level is not None and rng.random() < structure.rise:
            level += structure.height * rng.uniform(0.5, 1.5)
        elif rng.random() < self.worse:
            level -= rng.expovariate(1 / SLIP)
        else:
            level += rng.gauss(0, JITTER)
        level = min(level, place.ceiling)
        return self._outcome(structure, place.ceiling, level, level, rng)

    def large(self, context: Sequence[Outcome], rng: Random) -> Outcome:
        """Start a lineage: with the best shown kernel's structure, a little below it, or with another one."""
        best = max(context, key=lambda item: item.true_speedup, default=None)
        if best is not None and rng.random() < self.keep:
            structure = best.state.structure
            start = best.state.level - rng.expovariate(1 / SLIP)
        else:
            structure = rng.choices(self.structures, [item.share for item in self.structures])[0]
            start = structure.start + rng.gauss(0, 5 * JITTER)
        headroom = structure.ceiling - structure.start
        ceiling = max(structure.ceiling - self.spread * rng.random() * headroom, start)
        failed = rng.random() < self.failure
        return self._outcome(structure, ceiling, None if failed else start, start, rng)

    def _outcome(
        self, structure: Structure, ceiling: float, level: float | None, base: float, rng: Random
    ) -> Outcome:
        calls = 8.0 if rng.random() < self.straggler else 1.0
        if rng.random() < self.lost:
            level = None
        place = Place(structure, ceiling, level, base)
        if level is None:
            return Outcome(True, False, state=place, calls=calls)
        measured = math.exp(level + rng.gauss(0, self.noise))
        return Outcome(True, True, measured, math.exp(level), state=place, calls=calls)


def landscapes() -> list[Landscape]:
    return [
        Landscape("plateau", (Structure(1.0, 0.0, 2.0, 0.08, 0.6),), worse=0.2, spread=0.5),
        Landscape(
            "deceptive",
            (Structure(0.8, 0.6, 0.9, 0.2, 0.1), Structure(0.2, -0.3, 2.2, 0.35, 0.4)),
            keep=0.8,
            worse=0.2,
        ),
        Landscape(
            "late breakthrough",
            (Structure(0.75, 0.0, 0.1, 0.1, 0.05), Structure(0.25, 0.0, 2.5, 0.1, 1.2)),
            keep=0.5,
        ),
        Landscape("noise", (Structure(1.0, 0.0, 1.0, 0.3, 0.15),), worse=0.2, noise=0.15, spread=0.5),
        Landscape(
            "failing infrastructure",
            (Structure(1.0, 0.0, 1.8, 0.25, 0.4),),
            failure=0.2,
            worse=0.2,
            spread=0.5,
            lost=0.4,
            straggler=0.05,
        ),
    ]
