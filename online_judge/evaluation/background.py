"""Threads and processes that a candidate leaves at work after a call."""

from __future__ import annotations

import os
import sys
import threading
from types import FrameType

from online_judge import linux
from online_judge.evaluation import provenance
from online_judge.evaluation.flags import Flag

_MAX_FOUND = 8
_MAX_TEXT = 120
_POOL = "concurrent/futures/thread.py"
_LIBRARIES = ("/torch/", "/triton/", "/numpy/", "/tqdm/")


class Background:
    """What runs beside the main thread, told before the candidate is loaded and after its calls.

    Pools of torch, Triton and OpenMP start with the first calls: only what grows between two later
    calls counts, and Python threads that are at work in the candidate's code.
    """

    def __init__(self) -> None:
        """Remember the Python threads that are here before the candidate."""
        self._here = set(sys._current_frames())
        self._settled: int | None = None

    def settle(self) -> None:
        """Take what runs now, after the second call, as the rule."""
        self._settled = tasks()

    def found(self) -> list[str]:
        """One line for each thing at work now; to be asked directly after a call, before it is waited for."""
        lines = []
        names = {thread.ident: thread.name for thread in threading.enumerate()}
        for ident, frame in sys._current_frames().items():
            if ident in self._here or ident == threading.get_ident():
                continue
            if place := _work(frame):
                lines.append(f"thread {names.get(ident, '?')} is in {place}")
        if self._settled is not None and (more := tasks() - self._settled) > 0:
            lines.append(f"{more} more threads or processes than after an earlier call")
        return lines


def tasks() -> int:
    """Threads of this process and processes below it."""
    return len(os.listdir("/proc/self/task")) + len(linux.descendants(os.getpid()))


def flag(lines: object) -> Flag | None:
    """The flag for a player's claim of :meth:`Background.found`."""
    if not isinstance(lines, list) or not lines:
        return None
    return Flag("background_threads", "; ".join(str(line)[:_MAX_TEXT] for line in lines[:_MAX_FOUND]))


def _work(frame: FrameType | None) -> str | None:
    """Where a thread is at work for the candidate; None for idle workers and threads of libraries."""
    innermost = frame
    inside: list[str] = []
    while frame is not None:
        file = frame.f_code.co_filename
        if provenance.is_candidates(file):
            return f"{os.path.basename(file)}:{frame.f_lineno}"
        inside.append(file)
        frame = frame.f_back
    if innermost is None or any(library in file for file in inside for library in _LIBRARIES):
        return None
    code = innermost.f_code
    if code.co_name == "_worker" and code.co_filename.endswith(_POOL):
        return None
    return f"{os.path.basename(code.co_filename)}:{code.co_name}"
