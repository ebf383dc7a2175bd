"""One figure, and the statistics that figures share."""

import statistics
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import numpy
from pydantic import BaseModel, ConfigDict, Field

from tool_scripts.judge_bench.records import Session


class Figure(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    device: str = ""
    value: str  # the measured value with its unit, for people; ``number`` is the same as one number
    number: float | None = None
    target: str = ""
    # whether it reaches its target; None if there is no target or there are too few samples
    met: bool | None = None
    samples: str  # a description of the measurements behind it
    miss: str = ""  # by how much and with which units the target is missed
    details: dict[str, Any] = Field(default_factory=dict)
    sessions: tuple[Session, ...] = ()  # the calls that measured it


def met(missed: object, enough: object) -> bool | None:
    """Return False if the target is missed, True if it is met, None if there are too few samples."""
    return False if missed else (True if enough else None)


def counts(values: Iterable[object]) -> dict[str, int]:
    return dict(Counter(map(str, values)))


def share(part: int, whole: int) -> float | None:
    """Return the share of ``part`` in ``whole``, rounded; None if there is nothing."""
    return round(part / whole, 4) if whole else None


def spread(values: Sequence[float]) -> float:
    """Return (p90 - p10) / median."""
    return (quantile(values, 0.9) - quantile(values, 0.1)) / statistics.median(values)


def quantile(values: Sequence[float], share: float) -> float:
    """Return the quantile, interpolated between the nearest samples."""
    return float(numpy.quantile(values, share))


def median_of(values: Iterable[float | None]) -> float | None:
    """Return the median of the values that are not None."""
    known = [value for value in values if value is not None]
    return statistics.median(known) if known else None
