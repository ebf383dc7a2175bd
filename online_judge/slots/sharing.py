"""Who is on a device: jobs side by side, or one that needs all of its memory."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_LOOK_S = 0.25
_REMEMBERED = 8
"""Jobs of a problem that go in alone at once after one of them found too little memory."""


class Cancelled(Exception):
    """Nobody waits for the result any more."""


class NotEnoughMemory(Exception):
    """The device had too little memory for this job beside others."""


class DeviceSharing:
    """One device, shared by the threads of its slots."""

    def __init__(self) -> None:
        """Nobody is in it."""
        self.on_alone: list[Callable[[], object]] = []
        """Called before a job begins alone: each gives back memory that a slot keeps between jobs."""
        self._condition = threading.Condition()
        self._inside = 0
        self._alone = False
        self._line: list[object] = []
        self._large: dict[str, int] = {}

    @contextmanager
    def job(self, problem: str, cancelled: threading.Event, *, alone: bool = False) -> Iterator[bool]:
        """Do a job within the block, beside others or alone; gives whether it is alone.

        A job that is alone begins when all that are inside have ended, and no other begins before its end;
        jobs begin in the order in which they came.

        Args:
            problem: what the job's need of memory depends on.
            cancelled: ends the wait.
            alone: whether the job must be alone; so are those of a problem that :meth:`remember` named.

        Raises:
            Cancelled: ``cancelled`` was set.
        """
        alone = alone or self._is_large(problem)
        with self._entered(cancelled, alone=alone):
            if alone:
                for give_back in self.on_alone:
                    give_back()
            yield alone

    def remember(self, problem: str) -> None:
        """Let the next jobs of a problem be alone: one found too little memory beside others."""
        with self._condition:
            self._large[problem] = _REMEMBERED

    def forget(self, problem: str) -> None:
        """The job was at fault, not its problem: others of it may go in beside others."""
        with self._condition:
            self._large.pop(problem, None)

    def _is_large(self, problem: str) -> bool:
        """Whether a job of the problem found too little memory lately."""
        with self._condition:
            left = self._large.pop(problem, 0)
            if left > 1:
                self._large[problem] = left - 1
            return left > 0

    @contextmanager
    def _entered(self, cancelled: threading.Event, *, alone: bool) -> Iterator[None]:
        place = object()
        with self._condition:
            self._line.append(place)
            try:
                while self._line[0] is not place or self._alone or (alone and self._inside):
                    if cancelled.is_set():
                        raise Cancelled
                    self._condition.wait(_LOOK_S)
            finally:
                self._line.remove(place)
                self._condition.notify_all()
            self._inside += 1
            self._alone = alone
        try:
            yield
        finally:
            with self._condition:
                self._inside -= 1
                self._alone = False
                self._condition.notify_all()
