"""CPU cores that are kept for timing: the launches of a timed call must not wait for other work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection
from dataclasses import dataclass

_TIMED = 2  # the evaluator and the candidate process
_LEAST = 8  # cores per device from which two can be spared


@dataclass(frozen=True)
class Cores:
    """The cores of one device's processes; both are empty where none are set apart.

    Attributes:
        timing: for the two processes that are timed.
        others: for all others, and for these two at other times.
    """

    timing: tuple[int, ...] = ()
    others: tuple[int, ...] = ()


ANY_CORE = Cores()


def share_out(cores: Collection[int], devices: int) -> tuple[Cores, ...]:
    """Set two cores apart for the timing on each device; none with fewer than eight cores per device."""
    ordered = sorted(cores)
    if len(ordered) < _LEAST * devices:
        return (ANY_CORE,) * devices
    others = tuple(ordered[_TIMED * devices :])
    return tuple(Cores(tuple(ordered[_TIMED * i : _TIMED * (i + 1)]), others) for i in range(devices))


def run_on(cores: Collection[int]) -> None:
    """Keep all threads of this process to ``cores``; leave them where they are if these are empty."""
    if not cores:
        return
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # it has exited, or the core is not there any more
            os.sched_setaffinity(int(thread), cores)
