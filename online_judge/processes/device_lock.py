"""Who may use a device: many at a time while correctness is checked, one alone while something is timed.

What takes long and needs the device only now and then (a candidate that compiles and tunes, a candidate that
starts CUDA) holds no lock: it is stopped for as long as somebody has the device alone.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from online_judge.sandbox import linux

_FROZEN = struct.Struct("d")
_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW


class DeviceLock:
    """A lock between processes and threads, shared or exclusive, on two files.

    Everybody passes a turnstile, and stays in it until the lock itself is theirs. So whoever waits for
    exclusive use keeps all that come later out, shared ones too, and those come before any exclusive one
    that arrives after them: neither kind starves the other. The kernel does the waiting, and lets go of
    what a dead process held.

    Within a block of the same thread another :meth:`hold` is nothing new, unless it asks for exclusive use
    where the outer one does not. A child forked within the block, without an exec, keeps the lock if its
    parent is killed there and it is not.
    """

    def __init__(self, path: str | Path) -> None:
        """Use ``path`` and, for the turnstile, ``path`` with ``.turn``; both are made when missing."""
        self._path = os.fspath(path)
        self._mine = threading.local()
        for name in (self._path, self._turnstile, self._account):
            os.close(os.open(name, _FLAGS, 0o600))
        os.makedirs(self._registry, mode=0o700, exist_ok=True)

    @property
    def _turnstile(self) -> str:
        return f"{self._path}.turn"

    @property
    def _registry(self) -> str:
        """Folder with a file for each process whose descendants are to be stopped, named by its id."""
        return f"{self._path}.stoppable"

    @property
    def _account(self) -> str:
        """File with the seconds for which such processes have been stopped so far."""
        return f"{self._path}.stopped"

    @contextmanager
    def timing_memory(self) -> Iterator[None]:
        """Be the only one that has memory for timing; to be asked for before the device itself."""
        gate = os.open(f"{self._path}.course", _FLAGS, 0o600)
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            yield
        finally:
            os.close(gate)

    @contextmanager
    def stoppable(self, root: int) -> Iterator[None]:
        """Within the block, exclusive users of the device stop all processes below ``root``."""
        entry = os.path.join(self._registry, str(root))
        with self.hold(exclusive=False):
            os.close(os.open(entry, _FLAGS, 0o600))
        try:
            yield
        finally:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(entry)

    def stopped_s(self) -> float:
        """For how many seconds stoppable processes have been stopped since the files were made."""
        with contextlib.suppress(OSError, struct.error), open(self._account, "rb") as file:
            return float(_FROZEN.unpack(file.read(_FROZEN.size))[0])
        return 0.0

    def _roots(self) -> list[int]:
        return [int(name) for name in os.listdir(self._registry) if name.isdigit()]

    @contextmanager
    def _others_stopped(self) -> Iterator[None]:
        stopped = linux.stop_below(self._roots())
        begin = time.monotonic()
        try:
            yield
        finally:
            linux.go_on(stopped)
            total = self.stopped_s() + time.monotonic() - begin
            with open(self._account, "r+b") as file:
                file.write(_FROZEN.pack(total))

    @contextmanager
    def hold(self, *, exclusive: bool) -> Iterator[float]:
        """Hold the device for the length of the block; gives the seconds waited for it.

        Raises:
            RuntimeError: this thread holds it shared and asks for exclusive use.
        """
        outer: bool | None = getattr(self._mine, "exclusive", None)
        if outer is not None:
            if exclusive and not outer:
                raise RuntimeError("shared use of a device cannot become exclusive")
            yield 0.0
            return
        begin = time.monotonic()
        turnstile = os.open(self._path, _FLAGS, 0o600)
        try:
            turn = os.open(self._turnstile, _FLAGS, 0o600)
            try:
                fcntl.flock(turn, fcntl.LOCK_EX)
                fcntl.flock(turnstile, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
                fcntl.flock(turn, fcntl.LOCK_UN)
            finally:
                os.close(turn)
            self._mine.exclusive = exclusive
            try:
                with self._others_stopped() if exclusive else contextlib.nullcontext():
                    yield time.monotonic() - begin
            finally:
                self._mine.exclusive = None
                fcntl.flock(turnstile, fcntl.LOCK_UN)  # also where a forked child has the descriptor
        finally:
            os.close(turnstile)
