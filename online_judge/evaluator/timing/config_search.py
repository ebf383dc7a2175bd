"""Choose the configurations that a sweep tries next: a few spread out, then neighbours of the fastest.

This is coordinate descent from the fastest ones. A neighbour differs in one tunable, by one step if its
choices are numbers. The choice depends only on the times so far; imports no torch.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence

from adaexplore.core.text.tunables import Tunable, count
from online_judge.protocol.config_sweep import DECLARED

FIRST = 12
"""Configurations that are tried first, the declared one among them."""
MOST = 64
"""Most configurations that one sweep tries."""
_STARTS = 4  # number of fastest ones whose neighbours are all tried before the search ends
_CLOSE = 1.3  # a starting point takes at most this many times as long as the fastest
_DRAWN = 512  # combinations from which the first ones are chosen

Place = tuple[int, ...]
"""For each tunable the index of its value among the sorted choices."""


class ConfigSearch:
    """Chooses configurations by number, see :func:`adaexplore.core.text.tunables.combination`."""

    def __init__(self, tunables: Sequence[Tunable], left_out: Sequence[int] = ()) -> None:
        """Never choose a number in ``left_out``."""
        self._tunables = tunables
        self._left_out = left_out
        self._axes = [_Axis(tunable) for tunable in tunables]
        self._declared = tuple(axis.declared for axis in self._axes)
        self._chosen = {DECLARED, *left_out}
        if all(tunable.declared in tunable.choices for tunable in tunables):
            self._chosen.add(self._number(self._declared))  # the declared one under its other number

    def first(self) -> list[int]:
        """Return the first configurations, the declared one first."""
        declared = [] if DECLARED in self._left_out else [DECLARED]
        return declared + self._spread(FIRST - len(declared))

    def next(self, ms: Mapping[int, float], most: int) -> list[int]:
        """Return up to ``most`` untried neighbours of the fastest of ``ms``; empty if all have been tried."""
        if not ms:
            return self._spread(most)
        found: list[int] = []
        ranking = sorted(ms, key=lambda number: ms[number])
        starts = [number for number in ranking[:_STARTS] if ms[number] <= _CLOSE * ms[ranking[0]]]
        for start in starts:
            for place in self._neighbours(self._place(start)):
                if len(found) < min(most, self._left) and self._number(place) not in self._chosen:
                    found.append(self._choose(place))
        return found

    def _spread(self, most: int) -> list[int]:
        """Return up to ``most`` far apart ones that use each choice of a tunable about equally often."""
        total = count(self._tunables)
        drawn = [self._place(n + 1) for n in random.Random(0).sample(range(total), min(total, _DRAWN))]
        spread = list({self._place(number): None for number in sorted(self._chosen)})

        def rank(place: Place) -> tuple[int, float]:
            used = sum(other[axis] == at for other in spread for axis, at in enumerate(place))
            return used, -min(self._distance(place, other) for other in spread)

        found: list[int] = []
        while len(found) < min(most, self._left):
            drawn = [place for place in drawn if self._number(place) not in self._chosen]
            if not drawn:
                break
            spread.append(min(drawn, key=rank))
            found.append(self._choose(spread[-1]))
        return found

    @property
    def _left(self) -> int:
        return MOST - len(self._chosen)

    def _choose(self, place: Place) -> int:
        number = self._number(place)
        self._chosen.add(number)
        return number

    def _neighbours(self, place: Place) -> Iterator[Place]:
        for which, axis in enumerate(self._axes):
            for position in axis.beside(place[which]):
                yield (*place[:which], position, *place[which + 1 :])

    def _distance(self, one: Place, other: Place) -> float:
        return sum(axis.distance(a, b) for axis, a, b in zip(self._axes, one, other, strict=True))

    def _place(self, number: int) -> Place:
        if number == DECLARED:
            return self._declared
        place = []
        rest = number - 1
        for axis in self._axes:
            rest, choice = divmod(rest, axis.size)
            place.append(axis.positions[choice])
        return tuple(place)

    def _number(self, place: Place) -> int:
        number = 0
        for axis, position in zip(reversed(self._axes), reversed(place), strict=True):
            number = number * axis.size + axis.positions.index(position)
        return number + 1


class _Axis:
    """The choices of one tunable, sorted if they are numbers."""

    def __init__(self, tunable: Tunable) -> None:
        choices, declared = tunable.choices, tunable.declared
        self.size = len(choices)
        self._ordered = not isinstance(declared, bool | str)
        place = choices.index(declared) if declared in choices else 0
        order = [*range(self.size)]
        if not isinstance(declared, bool | str):
            numbers = [float(choice) for choice in choices]
            order.sort(key=lambda n: numbers[n])
            place = min(order, key=lambda n: abs(numbers[n] - declared))
        self.positions = [order.index(choice) for choice in range(self.size)]  # of each choice
        self.declared = self.positions[place]

    def beside(self, position: int) -> list[int]:
        """Return the positions of neighbours; if the choices are not numbers, all others."""
        if self._ordered:
            return [each for each in (position + 1, position - 1) if 0 <= each < self.size]
        return [each for each in range(self.size) if each != position]

    def distance(self, one: int, other: int) -> float:
        if self._ordered:
            return abs(one - other) / max(self.size - 1, 1)
        return float(one != other)
