"""Processes that wait, armed, for a candidate: no evaluation waits for a process or for CUDA to start."""

from __future__ import annotations

import contextlib
import logging
import shutil
import socket
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from adaexplore.core.errors import JudgeError
from online_judge.processes.fork_client import ForkClient, ForkServerLost
from online_judge.processes.gpu_lease import GpuLeases
from online_judge.processes.process_handle import ProcessHandle
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed, FrameError, is_readable
from online_judge.sandbox import linux
from online_judge.sandbox.process_spec import ProcessSpec

log = logging.getLogger(__name__)

_LOOK_S = 0.25
_START_S = 120.0
_CLOSE_S = 5.0
_FIRST_WORD_BYTES = 2**16


class StartFailed(JudgeError):
    """Processes die before they are ready for a candidate; more than one in a row did."""


@dataclass(frozen=True)
class ReadyProcess:
    """A process that waits for its first order.

    Attributes:
        process: ends it.
        connection: the evaluator's end; whoever takes the process closes it.
        folder: its private folder; whoever takes the process removes it.
        facts: what it said of itself before any candidate was in it.
        lifeline: tells when it dies; it belongs to ``process``.
        supervisor: process id of its supervisor.
    """

    process: ProcessHandle
    connection: socket.socket
    folder: Path
    facts: dict[str, Any]
    lifeline: socket.socket
    supervisor: int

    @property
    def alive(self) -> bool:
        """Whether its supervisor has not reported its end, and nobody has stopped it."""
        return not is_readable(0, self.lifeline) and not self.stopped

    @property
    def stopped(self) -> bool:
        """Return whether it is stopped, by whomever."""
        return any(linux.is_stopped(child) for child in linux.children(self.supervisor))

    def discard(self, fork_client: ForkClient) -> None:
        """End a process that nobody used."""
        self.connection.close()
        self.process.end(fork_client)
        shutil.rmtree(self.folder, ignore_errors=True)


class Pool:
    """ReadyProcess processes of one device; safe to call from threads.

    A process's first message on its connection, sent before it has seen a candidate, is
    ``{"armed": {...}}``. It is started while nothing is timed, and stopped until then whenever something is,
    so that no CUDA start disturbs that.
    """

    def __init__(
        self,
        fork_client: ForkClient,
        fresh: Callable[[], ProcessSpec],
        target: int,
        leases: GpuLeases | None = None,
        role: Literal["candidate", "evaluator"] = "candidate",
    ) -> None:
        """Start nothing yet.

        Args:
            fork_client: makes the processes.
            fresh: makes a private folder and the spec of a process in it; called from threads.
            target: how many are kept ready; with 0 each starts when it is asked for.
            leases: of the device; None where no start disturbs a timing.
            role: of all of them.
        """
        self._role = role
        self._forks = fork_client
        self._fresh = fresh
        self._target = target
        self._leases = leases
        self._changed = threading.Condition()
        self._ready: deque[ReadyProcess] = deque()
        self._starting = 0
        self._takers = 0
        self._failure: Exception | None = None
        self._threads: set[threading.Thread] = set()
        self._closed = False

    @property
    def ready(self) -> int:
        """How many are ready now."""
        with self._changed:
            return sum(each.alive for each in self._ready)

    def fill(self) -> None:
        """Begin to make as many ready as should be, without waiting for them."""
        with self._changed:
            self._refill()

    def take(self, cancelled: threading.Event) -> ReadyProcess | None:
        """A ready process, which is the caller's from now on; its successor is started at once.

        Returns:
            None when ``cancelled`` was set before there was one.

        Raises:
            ForkServerLost: the fork server died twice while it was asked for one.
            StartFailed: two processes in a row died before they were ready.
            JudgeError: the fork server does not come up.
        """
        with self._changed:
            if not self._takers:
                self._failure = None  # of a start that nobody waited for: time to try again
            self._takers += 1
            try:
                while not cancelled.is_set():
                    if (process := self._pop()) is not None:
                        return process
                    if self._closed:
                        raise ForkServerLost("the judge is closing")
                    if self._failure is not None:
                        failure, self._failure = self._failure, None
                        raise failure
                    self._refill()
                    self._changed.wait(_LOOK_S)
                return None
            finally:
                self._takers -= 1
                self._refill()

    def start_now(self, fresh: Callable[[], ProcessSpec]) -> ReadyProcess:
        """A process for one job that needs a spec of its own; blocks until it is armed.

        Raises:
            ForkServerLost, StartFailed, JudgeError: as :meth:`take`.
        """
        try:
            return self._start(fresh())
        except (ForkServerLost, StartFailed) as error:
            log.error("%s: a process is started once more", error)
            return self._start(fresh())

    def close(self) -> None:
        """End all that wait; those on their way end as soon as they are there."""
        with self._changed:
            self._closed = True
            threads = list(self._threads)
            processes = list(self._ready)
            self._ready.clear()
            self._changed.notify_all()
        for process in processes:
            process.discard(self._forks)
        deadline = time.monotonic() + _CLOSE_S
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _pop(self) -> ReadyProcess | None:
        """The first ready process that lives; the dead ones on the way are buried."""
        while self._ready:
            process = self._ready.popleft()
            if process.alive:
                return process
            log.warning("a process died while it waited for a candidate")
            process.discard(self._forks)
        return None

    def _refill(self) -> None:
        """Start what is missing, each in a thread of its own; the condition is held."""
        wanted = self._target + self._takers
        while not self._closed and len(self._ready) + self._starting < wanted:
            self._starting += 1
            thread = threading.Thread(target=self._add, name="arm-process", daemon=True)
            self._threads.add(thread)
            thread.start()

    def _add(self) -> None:
        """Make one more ready, or leave word why not; only the next taker tries again."""
        process: ReadyProcess | None = None
        failure: Exception | None = None
        try:
            process = self.start_now(self._fresh)
        except (ForkServerLost, JudgeError, OSError) as error:
            failure = error
        with self._changed:
            self._starting -= 1
            self._threads.discard(threading.current_thread())
            keep = process is not None and not self._closed
            if process is not None and keep:
                self._ready.append(process)
                self._failure = None
            elif failure is not None and not self._closed:
                self._failure = failure
            self._changed.notify_all()
        if process is not None and not keep:
            process.discard(self._forks)

    def _start(self, spec: ProcessSpec) -> ReadyProcess:
        our_end, process_end = channel.pair()
        ours, theirs = channel.pair()
        with contextlib.ExitStack() as while_it_starts:
            try:
                shared = self._leases.take("shared") if self._leases else contextlib.nullcontext()
                with shared, process_end, theirs:  # it starts CUDA as soon as it is forked
                    pid = self._forks.fork_process(process_end.fileno(), theirs.fileno(), spec)
                    if self._leases:
                        while_it_starts.enter_context(self._leases.take("stoppable", pid, "shared"))
            except (ForkServerLost, JudgeError):
                our_end.close()
                ours.close()
                shutil.rmtree(spec.folder, ignore_errors=True)
                raise
            process = ProcessHandle(ours, pid)
            # the supervisor's word before the last, so that the next is of the process's end
            facts = process.sandbox(_START_S)
            try:
                if facts is not None:
                    self._forks.note_sandbox(facts, self._role)
                word = _first_word(our_end, ours)
            except JudgeError as error:
                our_end.close()
                report = process.end(self._forks, seems_dead=True)
                shutil.rmtree(spec.folder, ignore_errors=True)
                if not isinstance(error, StartFailed):
                    raise
                raise StartFailed(f"{error} ({report.how}) {report.log[-500:]}".rstrip()) from None
        return ReadyProcess(process, our_end, Path(spec.folder), word, ours, pid)


def _first_word(sock: socket.socket, lifeline: socket.socket) -> dict[str, Any]:
    """What a process says of itself when it is armed."""
    ready = is_readable(_START_S, sock, lifeline)
    if not ready:
        raise StartFailed(f"a process was not ready for a candidate within {_START_S:.0f} s")
    try:
        message, _ = Channel(sock, _FIRST_WORD_BYTES).receive_json()
        facts: dict[str, Any] = message["ready"]
    except (ChannelClosed, FrameError, KeyError) as error:
        raise StartFailed("a process died before it was ready for a candidate") from error
    return facts
