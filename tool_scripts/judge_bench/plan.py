"""The options of one call of the benchmark."""

import logging
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from adaexplore.core.wire import Direction, DtypeName
from tool_scripts.judge_bench.candidates import Candidate

log = logging.getLogger("bench_judge")

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """The options; see ``--help``."""

    device: str
    recorded: Sequence[Candidate]
    own: Sequence[Candidate]
    out: Path
    deadline: float  # value of ``time.monotonic()`` after which no unit starts
    seed: int = 0
    slots: int = 4
    in_flight: int = 8
    plain_jobs: int = 10
    child_limit_s: float = 60.0
    count: int | None = None  # how many recorded candidates a part takes; None for its default
    repeats: int | None = None
    kernelbench: Path | None = None
    levels: Sequence[int] = (3, 2, 1)
    unit_limit_s: int = 120
    dtype: DtypeName = "fp32"
    direction: Direction = "forward"

    def state_of(self, part: str) -> str:
        """Return the name of a part's state: ``problems`` has one for each precision and direction."""
        named = [each for each in (self.dtype, self.direction) if each not in ("fp32", "forward")]
        return "-".join([part, *named]) if part == "problems" else part


def until(deadline: float, units: Sequence[T], jobs: int, work: Callable[[T], object]) -> int:
    """Run ``work`` on units, ``jobs`` at a time; return the number left over.

    No unit starts after the ``deadline`` of ``time.monotonic``.
    """

    def one(unit: T) -> bool:
        if time.monotonic() >= deadline:
            return True
        work(unit)
        return False

    with ThreadPoolExecutor(jobs) as pool:
        return sum(pool.map(one, units))
