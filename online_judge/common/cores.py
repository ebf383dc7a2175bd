"""CPU cores reserved for timing: launches of a timed call must not wait for other work.

The evaluator's and the candidate's threads that launch timed calls take turns on the same core, because on a
virtual machine two cores can differ by half in speed, and a process tends to stay on its core.
"""

import contextlib
import os
import threading
from collections.abc import Collection, Sequence
from dataclasses import dataclass

_TIMED = 2  # one for the threads that launch timed calls, one for the other threads of their processes
_LEAST = 8  # with at least this many cores per device two can be reserved


@dataclass(frozen=True)
class Cores:
    """The cores of one device's processes; both are empty if none are reserved."""

    timing: tuple[int, ...] = ()  # for the two timed processes, see :func:`time_on`
    others: tuple[int, ...] = ()  # for all other processes, and for these two at other times


ANY_CORE = Cores()


def share_out(cores: Collection[int], devices: Sequence[int]) -> tuple[Cores, ...]:
    """Reserve two cores for timing on each device; none with fewer than eight cores per device.

    ``devices`` are numbers on the machine, so judges of different devices choose different cores.
    """
    ordered = sorted(cores)
    if len(ordered) < _LEAST * (max(devices, default=0) + 1):
        return (ANY_CORE,) * len(devices)
    timing = [tuple(ordered[_TIMED * number : _TIMED * (number + 1)]) for number in devices]
    others = tuple(core for core in ordered if not any(core in pair for pair in timing))
    return tuple(Cores(pair, others) for pair in timing)


def run_on(cores: Collection[int]) -> None:
    """Pin all threads of this process to ``cores``; do nothing if these are empty."""
    _keep_threads(cores, cores)


def time_on(cores: Sequence[int]) -> None:
    """Pin the calling thread to the first of ``cores``, all others to the rest; do nothing without cores."""
    _keep_threads(cores[:1], cores[1:] or cores)


def _keep_threads(mine: Collection[int], others: Collection[int]) -> None:
    me = threading.get_native_id()
    for thread in map(int, os.listdir("/proc/self/task")):
        if cores := mine if thread == me else others:
            with contextlib.suppress(OSError):  # the thread has exited, or the core is gone
                os.sched_setaffinity(thread, cores)
