"""Tier A: a simulator of one problem, fitted to recorded trees.

A candidate has a level, the logarithm of its speedup. A step's result is drawn from recorded steps of
the same kind whose starting level was near (the parent's for a small step, the best shown kernel's for
a large one): whether it failed, and how far it moved.

Lineages have hidden ceilings. With probability ``ceiling_share`` a new lineage goes no further than a
recorded one that began at a similar level. With the same probability a ceiling explains the small steps of a
recorded lineage after its last advance; otherwise they count as evidence of how small steps move.
"""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random

from tool_scripts.search_bench.environment import Outcome
from tool_scripts.search_bench.moves import Move, Moves

NEIGHBOURS = 15
"""Number of recorded small or large steps (sum of weights) from which one is drawn."""
SIMILAR_LINEAGES = 8


@dataclass(frozen=True)
class State:
    """A candidate: its lineage's ceiling, its level (None: failed), the level from which it was made."""

    ceiling: float
    level: float | None
    base: float | None


class Transitions:
    """Recorded steps of one kind, by the level from which they started."""

    def __init__(self, moves: Sequence[Move], stuck_weight: float = 1.0) -> None:
        self._moves = sorted(moves, key=lambda move: move.start)
        self._starts = [move.start for move in self._moves]
        self._weights = [stuck_weight if move.stuck else 1.0 for move in self._moves]

    def draw(self, start: float, rng: Random) -> float | None:
        """Return how far one of the nearest recorded steps moved; None for a failure."""
        low = high = bisect_left(self._starts, start)
        weight = 0.0
        while weight < NEIGHBOURS and high - low < len(self._moves):
            below = start - self._starts[low - 1] if low > 0 else math.inf
            above = self._starts[high] - start if high < len(self._starts) else math.inf
            if below <= above:
                low -= 1
                weight += self._weights[low]
            else:
                weight += self._weights[high]
                high += 1
        move = rng.choices(self._moves[low:high], self._weights[low:high])[0]
        return None if move.end is None else move.end - move.start


class RecordedProblem:
    """The environment of one problem.

    Args:
        top: the greatest level that it allows.
        ceiling_share: probability that a lineage has a ceiling, below 1.
        noise: standard deviation of the logarithm of a measured speedup.
        repair_rate: probability that an edit of a failed kernel works.
    """

    def __init__(
        self, name: str, top: float, moves: Moves, ceiling_share: float, noise: float, repair_rate: float
    ) -> None:
        self.name = name
        self.top = math.exp(top)
        self._highest = top
        self._share = ceiling_share
        self._noise = noise
        self._repair_rate = repair_rate
        self._small = Transitions(moves.small, 1 - ceiling_share) if moves.small else None
        self._large = Transitions(moves.large) if moves.large else None
        self._fresh: Sequence[float | None] = moves.fresh or (None, 0.0)
        firsts = (*moves.fresh, *moves.first_repairs)
        self._firsts = [level for level in firsts if level is not None] or [0.0]
        self._lineages = moves.lineages or ((0.0, 0.0),)

    def small(self, parent: Outcome, rng: Random) -> Outcome:
        """Edit ``parent``, or repair it if it failed; its lineage continues."""
        state: State = parent.state
        if state.level is None:
            repaired = rng.random() < self._repair_rate
            level = rng.choice(self._firsts) if state.base is None else state.base
            return self._outcome(state.ceiling, level if repaired else None, state.base, rng)
        move = None if self._small is None else self._small.draw(state.level, rng)
        return self._outcome(state.ceiling, None if move is None else state.level + move, state.level, rng)

    def large(self, context: Sequence[Outcome], rng: Random) -> Outcome:
        """Start a lineage, from the best of ``context`` or from scratch."""
        base = max((item.state.level for item in context if item.state.level is not None), default=None)
        if base is None or self._large is None:
            level = rng.choice(self._fresh)
        else:
            move = self._large.draw(base, rng)
            level = None if move is None else base + move
        return self._outcome(self._ceiling(level, rng), level, base, rng)

    def _ceiling(self, level: float | None, rng: Random) -> float:
        """Draw the ceiling of a new lineage that begins at ``level``."""
        if rng.random() >= self._share:
            return self._highest
        if level is None:
            return rng.choice(self._lineages)[1]
        near = sorted(self._lineages, key=lambda pair: abs(pair[0] - level))[:SIMILAR_LINEAGES]
        first, best = rng.choice(near)
        return level + best - first

    def _outcome(self, ceiling: float, level: float | None, base: float | None, rng: Random) -> Outcome:
        if level is not None:
            level = min(level, ceiling, self._highest)
        state = State(ceiling, level, base)
        if level is None:
            return Outcome(True, False, state=state)
        return Outcome(True, True, math.exp(level + rng.gauss(0, self._noise)), math.exp(level), state=state)
