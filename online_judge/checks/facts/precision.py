"""Facts about the precision of outputs and its limits; imports no torch."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import get_args

from adaexplore.core.judging.parts import Precision, PrecisionLimit
from adaexplore.core.wire import Tier

TIERS: tuple[Tier, ...] = get_args(Tier)
"""The strictest first."""
SINGLE_ULP = 2.0**-23


@dataclass(frozen=True)
class Error:
    """Deviation of one output from its oracle, in units of the oracle's spread."""

    rms: float  # root mean square
    peak: float  # largest
    noise: float  # root mean square of the part that no common factor explains
    drift: float  # relative deviation of that common factor from 1
    size: float = 1.0  # root mean square of the oracle itself
    top: float = 1.0  # largest element of the oracle itself
    ulp: float = SINGLE_ULP  # relative spacing of the output's dtype, at least that of float32
    odd: int = 0  # number of elements that are finite on one side only; excluded from the other fields
    spread: float = 1.0  # the unit of the other fields, in units of the output

    def in_units_of(self, other: Error) -> Error:
        """Return this error in units of the spread of ``other``."""
        factor = self.spread / other.spread
        rms, peak, noise = (factor * each for each in (self.rms, self.peak, self.noise))
        return replace(self, rms=rms, peak=peak, noise=noise, spread=other.spread)


NO_ERROR = Error(0.0, 0.0, 0.0, 0.0)


@dataclass(frozen=True)
class Limit:
    """Largest error that a tier allows, in units of the oracle's spread."""

    rms: float  # of the root mean square
    peak: float  # of the largest deviation
    noise: float = math.inf  # of the root mean square of the part that no common factor explains
    drift: float = math.inf  # of the common factor's deviation from 1

    def allows(self, found: Error) -> bool:
        return (
            found.rms <= self.rms
            and found.peak <= self.peak
            and found.noise <= self.noise
            and found.drift <= self.drift
        )

    def times(self, factor: float) -> Limit:
        return Limit(factor * self.rms, factor * self.peak, factor * self.noise, factor * self.drift)


Limits = Mapping[Tier, Limit]
"""Limits from the strictest tier on; ``legacy`` has none."""


@dataclass(frozen=True)
class Graded:
    tier: Tier  # tier reached
    error: Error  # against the oracle
    limits: Limits  # of the tiers down to ``tier``, or to ``half`` if it reaches none
    emulated: bool  # whether the limits below ``strict`` come from an emulated reference

    @property
    def repeat_limit(self) -> Limit:
        """Return how much two calls on equal inputs may differ, if each is off by its tier's limit."""
        return self.limits[self.tier if self.tier in self.limits else "half"].times(2.0)

    def precision(self) -> Precision:
        """Return errors and limits for verdicts."""
        return Precision(
            tier=self.tier,
            rms=self.error.rms,
            peak=self.error.peak,
            noise=self.error.noise,
            limits={
                tier: PrecisionLimit(rms=each.rms, peak=each.peak, noise=min(each.noise, each.rms))
                for tier, each in self.limits.items()
            },
            basis="emulated" if self.emulated else "constants",
        )


def least_precise(grades: Sequence[Graded]) -> Graded:
    """Return the grade with the loosest tier; the first of several."""
    return max(grades, key=lambda each: TIERS.index(each.tier))


def worst(tiers: Iterable[Tier]) -> Tier:
    """Return the loosest of several tiers; ``strict`` of none."""
    return max(tiers, key=TIERS.index, default="strict")


def meets(tier: Tier, needed: Tier) -> bool:
    return TIERS.index(tier) <= TIERS.index(needed)
