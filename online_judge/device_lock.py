"""Who may use a device: many at a time while correctness is checked, one alone while something is timed.

What takes long and needs the device only now and then (a candidate that compiles and tunes, a player that
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
from dataclasses import dataclass
from pathlib import Path

from online_judge import linux
from online_judge.cores import ANY_CORE, Cores, run_on, time_on

_FROZEN = struct.Struct("d")
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

    Within a block of the same thread another :meth:`hold` is nothing new, unless it asks for exclusive use
    where the outer one does not. A child forked within the block, without an exec, keeps the lock if its
    parent is killed there and it is not.
    """

    def __init__(self, path: str | Path, cores: Cores = ANY_CORE) -> None:
        """Use ``path`` and, for the turnstile, ``path`` with ``.turn``; both are made when missing.

        A process with exclusive use runs on the ``cores`` for timing meanwhile; see :func:`time_on`.
        """
        self._path = os.fspath(path)
        self._cores = cores
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
    def course(self) -> Iterator[None]:
        """Be the only one that has memory for timing; to be asked for before the device itself."""
        if getattr(self._mine, "course", False):
            yield
            return
        gate = os.open(f"{self._path}.course", _FLAGS, 0o600)
        try:
            fcntl.flock(gate, fcntl.LOCK_EX)
            self._mine.course = True
            yield
        finally:
            self._mine.course = False
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

    def release_stopped(self) -> None:
        """Let all go on that a dead user of the device may have left stopped."""
        linux.go_on(linux.below(self._roots()))

    def _roots(self) -> list[int]:
        return [int(name) for name in os.listdir(self._registry) if name.isdigit()]

    @contextmanager
    def _others_stopped(self) -> Iterator[None]:
        stopped = linux.stop_below(self._roots())
        begin = time.monotonic()
        try:
            time_on(self._cores.timing)
            yield
        finally:
            run_on(self._cores.others)
            linux.go_on(stopped)
            total = self.stopped_s() + time.monotonic() - begin
            with open(self._account, "r+b") as file:
                file.write(_FROZEN.pack(total))

    @contextmanager
    def hold(self, *, exclusive: bool) -> Iterator[Hold]:
        """Hold the device for the length of the block; gives the times of this use.

        Raises:
            RuntimeError: this thread holds it shared and asks for exclusive use.
        """
        outer: Hold | None = getattr(self._mine, "hold", None)
        if outer is not None:
            if exclusive and not outer.exclusive:
                raise RuntimeError("shared use of a device cannot become exclusive")
            begin = time.monotonic()
            inner = Hold(exclusive, 0.0)
            try:
                yield inner
            finally:
                inner.held_s = time.monotonic() - begin
            return
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
            use = self._mine.hold = Hold(exclusive, got - begin)
            try:
                with self._others_stopped() if exclusive else contextlib.nullcontext():
                    yield use
            finally:
                self._mine.hold = None
                fcntl.flock(room, fcntl.LOCK_UN)  # also where a forked child has the descriptor
                use.held_s = time.monotonic() - got
        finally:
            os.close(room)
