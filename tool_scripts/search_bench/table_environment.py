"""Tier B: real kernels. A step leads to a candidate that was timed on a GPU, with what was measured there.

The kernels, their times and their failures are real; how a step chooses the next candidate stands in for the
model, and :class:`Habits` holds all of that.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

from tool_scripts.search_bench.environment import Outcome
from tool_scripts.search_bench.table import Landscape, Timed, read_table
from tool_scripts.search_bench.templates.space import NO_SLIP, SLIP_AXIS, Value

TABLE = Path(__file__).resolve().parents[2] / "results" / "search" / "kernel-table.jsonl.gz"
LEAST_TOP = (
    1.1  # shapes on which nothing beats torch by this much are left out: there is little gain to share
)


@dataclass(frozen=True)
class Habits:
    """How the model that is stood in for behaves; the four rates are the recorded trees' (without p83).

    Attributes:
        small_fails: share of edits of a correct kernel that fail.
        repair_fails: share of edits of a failed kernel that fail again.
        large_fails: share of new kernels that fail when correct ones are shown.
        fresh_fails: share of new kernels that fail when none is shown.
        numbers: share of edits that turn a number; the others turn a structural detail.
        next_value: share of turned numbers that go to a neighbouring value; the others go to any value.
        step: structures are listed from plain to elaborate; each step away from the best structure shown
            (from the plain end when none is) multiplies a structure's weight in a large step by this.
        repeated: a large step asks for a different structure; this multiplies the weight of those shown.
        kept: share of the axes on which a new kernel keeps the best shown kernel's value.
    """

    small_fails: float = 0.26
    repair_fails: float = 0.36
    large_fails: float = 0.31
    fresh_fails: float = 0.54
    numbers: float = 0.7
    next_value: float = 0.7
    step: float = 0.6
    repeated: float = 0.3
    kept: float = 0.5


@dataclass(frozen=True)
class Written:
    """A candidate: what was measured, and what was meant, which is another where a slip came in between."""

    got: Timed
    meant: Timed


class KernelProblem:
    """The environment of one shape of one family."""

    def __init__(self, landscape: Landscape, habits: Habits | None = None) -> None:
        self.name = landscape.name
        self._landscape = landscape
        self._habits = habits or Habits()
        self._structures = list(dict.fromkeys(timed.point.structure for timed in landscape.timed))
        right = [landscape.speedup(timed) for timed in landscape.timed if timed.correct]
        self.top: float | None = max(right, default=0.0)

    def root(self, rng: Random) -> Outcome:
        """The empty root."""
        return Outcome(False, False)

    def small(self, parent: Outcome, rng: Random) -> Outcome:
        """Turn one number or detail of ``parent``, or repair it where it failed."""
        written: Written = parent.state
        if not written.got.correct:
            if rng.random() < self._habits.repair_fails:
                return self._failed(written.meant, rng)
            return self.arrive(written.meant, rng)
        return self._written(self._turned(written.got, rng), self._habits.small_fails, rng)

    def large(self, parent: Outcome, context: Sequence[Outcome], rng: Random) -> Outcome:
        """Write a kernel of some structure, starting from the best of ``context``."""
        best = max(context, key=lambda shown: shown.speedup, default=None)
        habits = self._habits
        if best is None:
            weights = [habits.step**rank for rank in range(len(self._structures))]
            wish: Mapping[str, Value] = {}
        else:
            used = {shown.state.got.point.structure for shown in context}
            at = self._structures.index(best.state.got.point.structure)
            weights = [
                habits.step ** abs(rank - at) * (habits.repeated if structure in used else 1.0)
                for rank, structure in enumerate(self._structures)
            ]
            choices = best.state.got.point.choices
            wish = {axis: value for axis, value in choices.items() if rng.random() < habits.kept}
        structure = rng.choices(self._structures, weights)[0]
        fails = habits.fresh_fails if best is None else habits.large_fails
        return self._written(_nearest(self._plain[structure], wish, rng), fails, rng)

    def arrive(self, timed: Timed, rng: Random) -> Outcome:
        """The outcome of a step that leads to ``timed``."""
        return self._measured(Written(timed, timed), rng) if timed.correct else self._failed(timed, rng)

    @cached_property
    def _plain(self) -> dict[str, list[Timed]]:
        """Candidates without a slip, by structure."""
        return {
            name: [t for t in self._landscape.timed if t.point.structure == name and t.point.slip == NO_SLIP]
            for name in self._structures
        }

    @cached_property
    def _slips(self) -> dict[str, list[Timed]]:
        """Candidates that failed for a slip, by structure."""
        return {
            name: [
                t
                for t in self._landscape.timed
                if t.point.structure == name and t.point.slip != NO_SLIP and not t.correct
            ]
            for name in self._structures
        }

    def _turned(self, start: Timed, rng: Random) -> Timed:
        """The candidate nearest to ``start`` that differs on one axis, drawn."""
        pool = self._plain[start.point.structure]
        values: dict[str, list[Value]] = {}
        for axis in start.point.choices:
            found = sorted(
                {timed.point.choices[axis] for timed in pool}, key=lambda value: (str(type(value)), value)
            )
            if axis != SLIP_AXIS and len(found) > 1:
                values[axis] = found
        if not values:
            return start
        numbers, details = [a for a in values if a.isupper()], [a for a in values if not a.isupper()]
        axis = rng.choice((numbers if rng.random() < self._habits.numbers else details) or list(values))
        now = start.point.choices[axis]
        at, others = values[axis].index(now), [value for value in values[axis] if value != now]
        if axis.isupper() and rng.random() < self._habits.next_value:
            others = values[axis][max(0, at - 1) : at] + values[axis][at + 1 : at + 2]
        turned = rng.choice(others)
        able = [timed for timed in pool if timed.point.choices[axis] == turned]
        return _nearest(able, start.point.choices, rng)

    def _written(self, meant: Timed, fails: float, rng: Random) -> Outcome:
        """``meant``, or a slip as often as makes ``fails`` of such steps fail in all."""
        pool = self._plain[meant.point.structure]
        unfit = fmean(not timed.correct for timed in pool)
        slips = max(0.0, (fails - unfit) / (1 - unfit)) if unfit < 1 else 0.0
        return self._failed(meant, rng) if rng.random() < slips else self.arrive(meant, rng)

    def _failed(self, meant: Timed, rng: Random) -> Outcome:
        """A failure on the way to ``meant``, or to the nearest correct candidate where that cannot work."""
        pool = self._plain[meant.point.structure]
        slips = self._slips[meant.point.structure]
        if not meant.correct:
            got = meant
            able = [timed for timed in pool if timed.correct]
            meant = _nearest(able, meant.point.choices, rng) if able else meant
        else:
            got = rng.choice(slips) if slips else Timed(meant.point, "wrong")
        return Outcome(got.status != "compile_error", False, state=Written(got, meant))

    def _measured(self, written: Written, rng: Random) -> Outcome:
        """One evaluation of a correct candidate: a repeat of torch's and one of its own."""
        timed, eager = written.got, self._landscape.eager_us
        measured = rng.choice(eager) / rng.choice(timed.repeats_us)
        return Outcome(True, True, measured, median(eager) / timed.median_us, state=written)


def kernel_problems(file: Path = TABLE, habits: Habits | None = None) -> list[KernelProblem]:
    """The environments of all shapes in the table on which something beats torch.

    Raises:
        ConfigError: the table cannot be read, or a line of it is malformed.
    """
    problems = [KernelProblem(landscape, habits) for landscape in read_table(file).landscapes]
    return [problem for problem in problems if (problem.top or 0.0) >= LEAST_TOP]


def _nearest(pool: Sequence[Timed], wish: Mapping[str, Value], rng: Random) -> Timed:
    """One of ``pool`` that differs from ``wish`` on the fewest axes."""

    def distance(timed: Timed) -> int:
        choices: Mapping[str, Any] = timed.point.choices
        return sum(choices.get(axis, value) != value for axis, value in wish.items())

    least = min(map(distance, pool))
    return rng.choice([timed for timed in pool if distance(timed) == least])
