"""What one call of the benchmark is asked to measure."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from tool_scripts.judge_bench.candidates import Candidate
from tool_scripts.judge_bench.records import Judged

log = logging.getLogger("bench_judge")

T = TypeVar("T")


@dataclass(frozen=True)
class Plan:
    """The options; see ``--help``.

    Attributes:
        device: ``cuda`` or ``cpu``.
        recorded: recorded candidates.
        own: this project's own.
        out: folder of the state.
        deadline: value of ``time.monotonic()`` after which no unit is begun.
        count: how many recorded candidates a part takes; None for its default.
        kernelbench: folder with ``level<N>/<id>_*.py``.
        levels: of KernelBench, in the order in which ``problems`` takes them.
        unit_limit_s: own time of a reference, and of its candidate, in ``problems``.
    """

    device: str
    recorded: Sequence[Candidate]
    own: Sequence[Candidate]
    out: Path
    deadline: float
    seed: int = 0
    slots: int = 4
    in_flight: int = 8
    plain_jobs: int = 10
    child_limit_s: float = 60.0
    count: int | None = None
    repeats: int | None = None
    kernelbench: Path | None = None
    levels: Sequence[int] = (3, 2, 1)
    unit_limit_s: int = 120
    queue_submissions: int = 600
    queue_limit: int = 100
    queue_sleep_s: float = 60.0
    queue_finish: int = 2
    child_environment: dict[str, str] = field(default_factory=dict)

    def time_is_up(self) -> bool:
        """Whether no further unit may be begun."""
        return time.monotonic() >= self.deadline

    def log_file(self, part: str) -> Path:
        """Where the judge of a part logs; written anew each time."""
        return self.out / f"{self.device}-{part}-judge.log"

    def each(self, units: Sequence[T], jobs: int, work: Callable[[T], object]) -> int:
        """Do ``work`` on units, ``jobs`` at a time, until the time is up; gives the number left over."""
        done = 0

        def one(unit: T) -> bool:
            if self.time_is_up():
                return False
            work(unit)
            return True

        with ThreadPoolExecutor(jobs) as pool:
            for finished in pool.map(one, units):
                done += finished
        return len(units) - done


def tell(unit: Judged) -> None:
    """Progress of one verdict, in one line."""
    speed = "" if unit.speedup is None else f" {unit.speedup:.3f}x"
    rejects = f" REJECT {','.join(unit.rejects)}" if unit.rejects else ""
    log.info("%s: %s%s%s (%.1f s)", unit.unit, unit.error or unit.status, speed, rejects, unit.seconds)


def without(candidates: Iterable[Candidate], known: Iterable[str]) -> list[Candidate]:
    """The candidates whose ids are not known yet."""
    done = set(known)
    return [each for each in candidates if each.id not in done]
