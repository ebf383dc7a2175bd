"""One figure, and the statistics that figures share."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from tool_scripts.judge_bench.records import Judged, Session


class Figure(BaseModel):
    """One figure.

    Attributes:
        name: of the figure.
        device: ``cuda`` or ``cpu``.
        value: what was measured, with its unit, for people.
        number: the same as one number where it is one.
        target: what it must reach.
        met: whether it does; None where the figure has no target or too few samples.
        samples: what it is computed from.
        miss: by how much and with which units it is missed.
        details: more of it.
        sessions: date, command and revision of each call that measured it.
    """

    model_config = ConfigDict(frozen=True)

    name: str
    device: str
    value: str
    number: float | None = None
    target: str = ""
    met: bool | None = None
    samples: str
    miss: str = ""
    details: dict[str, Any] = Field(default_factory=dict)
    sessions: tuple[Session, ...] = ()


def spread(values: Sequence[float]) -> float:
    """(p90 - p10) / median."""
    return (quantile(values, 0.9) - quantile(values, 0.1)) / statistics.median(values)


def quantile(values: Sequence[float], share: float) -> float:
    """The quantile, interpolated between the samples next to it."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    low = int(place)
    high = min(low + 1, len(ordered) - 1)
    return ordered[low] + (place - low) * (ordered[high] - ordered[low])


def median_of(values: Iterable[float | None]) -> float | None:
    """The median of the values that are there."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None


def latest(verdicts: Iterable[Judged]) -> list[Judged]:
    """The last record of each unit, in the order of the first."""
    return list({each.unit: each for each in verdicts}.values())


def by_problem(verdicts: Iterable[Judged]) -> dict[str, list[Judged]]:
    """The verdicts of each problem."""
    groups: dict[str, list[Judged]] = {}
    for each in verdicts:
        groups.setdefault(each.problem, []).append(each)
    return groups
