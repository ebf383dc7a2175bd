"""CPU cores that are kept for timing: the launches of a timed call must not wait for other work."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Collection, Sequence
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


def share_out(cores: Collection[int], devices: Sequence[int]) -> tuple[Cores, ...]:
    """Set two cores apart for the timing on each device.

    Args:
        cores: that this process may use.
        devices: numbers on the machine, so that judges of different devices choose different cores.

    Returns:
        For each device; without any cores where there are fewer than eight per device of the machine.
    """
    ordered = sorted(cores)
    if len(ordered) < _LEAST * (max(devices, default=0) + 1):
        return (ANY_CORE,) * len(devices)
    timing = [tuple(ordered[_TIMED * number : _TIMED * (number + 1)]) for number in devices]
    others = tuple(core for core in ordered if not any(core in pair for pair in timing))
    return tuple(Cores(pair, others) for pair in timing)


def run_on(cores: Collection[int]) -> None:
    """Keep all threads of this process to ``cores``; leave them where they are if these are empty."""
    if not cores:
        return
    for thread in os.listdir("/proc/self/task"):
        with contextlib.suppress(OSError):  # it has exited, or the core is not there any more
            os.sched_setaffinity(int(thread), cores)
