"""Who may use a device: many at a time while correctness is checked, one alone while something is timed."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


@dataclass
class Hold:
    """One use of the device.

    Attributes:
        exclusive: whether nobody else was there.
        waited_s: how long it took to get it.
        held_s: for how long it was kept; 0 until it is given back.
    """

    exclusive: bool
    waited_s: float
    held_s: float = 0.0


class DeviceLock:
    """A lock between processes and threads, shared or exclusive, on two files.

    Everybody passes a turnstile, and stays in it until the lock itself is theirs. So whoever waits for
    exclusive use keeps all that come later out, shared ones too, and those come before any exclusive one
    that arrives after them: neither kind starves the other. The kernel does the waiting, and lets go of
    what a dead process held.

    Not reentrant: whoever holds the lock and asks for it again may wait for itself. A child forked within
    the block, without an exec, keeps the lock if its parent is killed there and it is not.
    """

    def __init__(self, path: str | Path) -> None:
        """Use ``path`` and, for the turnstile, ``path`` with ``.turn``; both are made when missing."""
        self._path = os.fspath(path)
        for name in (self._path, self._turnstile):
            os.close(os.open(name, _FLAGS, 0o600))

    @property
    def _turnstile(self) -> str:
        return f"{self._path}.turn"

    @contextmanager
    def hold(self, *, exclusive: bool) -> Iterator[Hold]:
        """Hold the device for the length of the block; gives the times of this use."""
        begin = time.monotonic()
        room = os.open(self._path, _FLAGS, 0o600)
        try:
            turn = os.open(self._turnstile, _FLAGS, 0o600)
            try:
                fcntl.flock(turn, fcntl.LOCK_EX)
                fcntl.flock(room, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
                fcntl.flock(turn, fcntl.LOCK_UN)
            finally:
                os.close(turn)
            got = time.monotonic()
            use = Hold(exclusive, got - begin)
            try:
                yield use
            finally:
                fcntl.flock(room, fcntl.LOCK_UN)  # also where a forked child has the descriptor
                use.held_s = time.monotonic() - got
        finally:
            os.close(room)
