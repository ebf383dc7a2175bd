"""Tier B: real kernels. A step leads to a candidate that was timed on a GPU, and gets its measured times.

The kernels, their times and their failures are real; the choice of the next candidate replaces the
model, and :class:`Habits` has all its parameters.

The stored table has compressed lines of JSON. The first describes the measurement. Then each structure of a
shape, from plain to elaborate, has a line that names its axes, followed by a line for each of its candidates:
the values along the axes, the slip, the status and, if that is ``ok``, the repeats in microseconds. An axis
in capitals is a number (a block size, warps, stages), one in lower case is a structural detail. A slip is a
typical mistake of models, added to a right candidate.
"""

import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from random import Random
from statistics import fmean, median
from typing import Any

from tool_scripts.search_bench.environment import Outcome

Value = int | str

TABLE = Path(__file__).resolve().parents[2] / "results" / "search" / "kernel-table.jsonl.gz"
LEAST_TOP = 1.1
"""Shapes on which nothing beats torch by this factor are left out, because there is little to gain."""
EAGER = "eager"
"""The structure of the baselines."""
SLIP_AXIS = "slip"
NO_SLIP = "none"
OK = "ok"


@dataclass(frozen=True)
class Timed:
    """One measured candidate: its status and, if that is ``ok``, its repeats."""

    structure: str
    choices: Mapping[str, Value]
    status: str
    repeats_us: tuple[float, ...] = ()

    @property
    def slipped(self) -> bool:
        """True for a right candidate with an added mistake."""
        return self.choices[SLIP_AXIS] != NO_SLIP

    @property
    def correct(self) -> bool:
        """True if it compiled, ran and agreed with the reference."""
        return self.status == OK


@dataclass(frozen=True)
class Habits:
    """Behaviour of the simulated model; the four rates are those of the recorded trees (without p83)."""

    small_fails: float = 0.26  # share of edits of a correct kernel that fail
    repair_fails: float = 0.36  # share of edits of a failed kernel that fail again
    large_fails: float = 0.31  # share of new kernels that fail when correct ones are shown
    fresh_fails: float = 0.54  # share of new kernels that fail when none is shown
    numbers: float = 0.7  # share of edits that change a number; the others change a structural detail
    # share of changed numbers that move to a neighbouring value; the others move to any value
    next_value: float = 0.7
    # structures are listed from plain to elaborate; each step away from the best structure shown (from the
    # plain end when none is) multiplies a structure's weight in a large step by this
    step: float = 0.6
    # a large step asks for a different structure; this multiplies the weight of those shown
    repeated: float = 0.3
    kept: float = 0.5  # share of the axes on which a new kernel keeps the best shown kernel's value


@dataclass(frozen=True)
class Written:
    """A candidate: the measured one, and the intended one, which differs after a slip."""

    got: Timed
    meant: Timed


@dataclass(frozen=True)
class KernelProblem:
    """The environment of one shape of one family: all its candidates, and torch's time there."""

    name: str
    eager_us: tuple[float, ...]
    timed: tuple[Timed, ...]
    habits: Habits

    def speedup(self, timed: Timed) -> float:
        """Return the true speedup of a correct candidate."""
        return median(self.eager_us) / median(timed.repeats_us)

    @cached_property
    def top(self) -> float:
        """The greatest speedup of a correct candidate."""
        return max((self.speedup(timed) for timed in self.timed if timed.correct), default=0.0)

    def small(self, parent: Outcome, rng: Random) -> Outcome:
        """Change one number or detail of ``parent``, or repair it if it failed."""
        written: Written = parent.state
        if not written.got.correct:
            if rng.random() < self.habits.repair_fails:
                return self._failed(written.meant, rng)
            return self.arrive(written.meant, rng)
        return self._written(self._turned(written.got, rng), self.habits.small_fails, rng)

    def large(self, context: Sequence[Outcome], rng: Random) -> Outcome:
        """Write a kernel of some structure, starting from the best of ``context``."""
        best = max(context, key=lambda shown: shown.speedup, default=None)
        habits, structures = self.habits, list(self._plain)
        if best is None:
            weights = [habits.step**rank for rank in range(len(structures))]
            wish: Mapping[str, Value] = {}
        else:
            used = {shown.state.got.structure for shown in context}
            at = structures.index(best.state.got.structure)
            weights = [
                habits.step ** abs(rank - at) * (habits.repeated if structure in used else 1.0)
                for rank, structure in enumerate(structures)
            ]
            choices = best.state.got.choices
            wish = {axis: value for axis, value in choices.items() if rng.random() < habits.kept}
        structure = rng.choices(structures, weights)[0]
        fails = habits.fresh_fails if best is None else habits.large_fails
        return self._written(_nearest(self._plain[structure], wish, rng), fails, rng)

    def arrive(self, timed: Timed, rng: Random) -> Outcome:
        """Return the outcome of a step that leads to ``timed``: one repeat of torch's and one of its own."""
        if not timed.correct:
            return self._failed(timed, rng)
        measured = rng.choice(self.eager_us) / rng.choice(timed.repeats_us)
        return Outcome(True, True, measured, self.speedup(timed), Written(timed, timed))

    @cached_property
    def _plain(self) -> dict[str, list[Timed]]:
        """Candidates without a slip, by structure."""
        plain: dict[str, list[Timed]] = {timed.structure: [] for timed in self.timed}
        for timed in self.timed:
            if not timed.slipped:
                plain[timed.structure].append(timed)
        return plain

    def _turned(self, start: Timed, rng: Random) -> Timed:
        """Draw a candidate near ``start`` that differs on one axis."""
        pool = self._plain[start.structure]
        values: dict[str, list[Value]] = {}
        for axis in start.choices:
            found = {timed.choices[axis] for timed in pool}
            if axis != SLIP_AXIS and len(found) > 1:
                values[axis] = sorted(found, key=lambda value: (str(type(value)), value))
        if not values:
            return start
        numbers, details = [a for a in values if a.isupper()], [a for a in values if not a.isupper()]
        axis = rng.choice((numbers if rng.random() < self.habits.numbers else details) or list(values))
        now = start.choices[axis]
        at, others = values[axis].index(now), [value for value in values[axis] if value != now]
        if axis.isupper() and rng.random() < self.habits.next_value:
            others = values[axis][max(0, at - 1) : at] + values[axis][at + 1 : at + 2]
        turned = rng.choice(others)
        return _nearest([timed for timed in pool if timed.choices[axis] == turned], start.choices, rng)

    def _written(self, meant: Timed, fails: float, rng: Random) -> Outcome:
        """Write ``meant`` or a slip of it, so that the share ``fails`` of such steps fails."""
        unfit = fmean(not timed.correct for timed in self._plain[meant.structure])
        slips = max(0.0, (fails - unfit) / (1 - unfit)) if unfit < 1 else 0.0
        return self._failed(meant, rng) if rng.random() < slips else self.arrive(meant, rng)

    def _failed(self, meant: Timed, rng: Random) -> Outcome:
        """Fail near ``meant``, or near the nearest correct candidate if ``meant`` cannot work."""
        if not meant.correct:
            got = meant
            able = [timed for timed in self._plain[meant.structure] if timed.correct]
            meant = _nearest(able, meant.choices, rng) if able else meant
        else:
            failed = (timed for timed in self.timed if timed.slipped and not timed.correct)
            slips = [timed for timed in failed if timed.structure == meant.structure]
            got = rng.choice(slips) if slips else Timed(meant.structure, meant.choices, "wrong")
        return Outcome(got.status != "compile_error", False, state=Written(got, meant))


def kernel_problems(file: Path = TABLE, habits: Habits | None = None) -> list[KernelProblem]:
    """Return the environments of all shapes in the table on which something beats torch."""
    return [problem for problem in read_table(file, habits) if problem.top >= LEAST_TOP]


def read_table(file: Path = TABLE, habits: Habits | None = None) -> list[KernelProblem]:
    """Read the stored table: the environments of all shapes."""
    found: dict[str, list[Timed]] = {}
    for line in gzip.decompress(file.read_bytes()).decode().splitlines()[1:]:
        data: Any = json.loads(line)
        if isinstance(data, dict):
            structure, axes = data["structure"], [*data["axes"], SLIP_AXIS]
            timed = found.setdefault(f"{data['family']} {'x'.join(map(str, data['shape']))}", [])
        else:
            status, *repeats = data[len(axes) :]
            choices = dict(zip(axes, data, strict=False))
            timed.append(Timed(structure, choices, status, tuple(map(float, repeats))))
    problems = []
    for name, candidates in found.items():
        (eager,) = [timed for timed in candidates if timed.structure == EAGER]
        rest = tuple(timed for timed in candidates if timed.structure != EAGER)
        problems.append(KernelProblem(name, eager.repeats_us, rest, habits or Habits()))
    return problems


def _nearest(pool: Sequence[Timed], wish: Mapping[str, Value], rng: Random) -> Timed:
    """Return one of ``pool`` that differs from ``wish`` on the fewest axes."""

    def distance(timed: Timed) -> int:
        return sum(timed.choices.get(axis, value) != value for axis, value in wish.items())

    least = min(map(distance, pool))
    return rng.choice([timed for timed in pool if distance(timed) == least])
