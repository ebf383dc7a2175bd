"""Processes started in advance, so that no evaluation waits for a process or for CUDA to start."""

import contextlib
import logging
import shutil
import threading
import time
from collections import deque
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from adaexplore.core.errors import JudgeError
from online_judge.processes.fork_client import ForkClient, ForkServerLost
from online_judge.processes.gpu_lease import Cancelled, GpuLeases
from online_judge.processes.process_handle import ProcessHandle
from online_judge.protocol import channel
from online_judge.protocol.channel import Channel, ChannelClosed, FrameError, is_readable
from online_judge.protocol.messages import Ready
from online_judge.sandbox.process_spec import ProcessSpec

log = logging.getLogger(__name__)

_LOOK_S = 0.25
_START_S = 120.0
_CLOSE_S = 5.0
_FIRST_MESSAGE_BYTES = 2**16


class StartFailed(JudgeError):
    """Two processes in a row died before they were ready."""


@dataclass(eq=False)
class Pool:
    """Processes of one device and role that wait for an order; thread-safe.

    A process's first message, sent before it has seen a candidate, is :class:`Ready`. A process starts only
    while nothing is timed, and until it is ready it is stopped whenever something is timed. So no start of
    CUDA disturbs a timing. While a job runs alone on the device for lack of memory none is kept ready.
    """

    _forks: ForkClient
    _spec: ProcessSpec  # spec of each process, without its folders
    _target: int  # number kept ready; with 0 each starts on demand
    _leases: GpuLeases | None = None  # of the device; None if nothing is timed
    _changed: threading.Condition = field(default_factory=threading.Condition, init=False)
    _ready: deque[ProcessHandle] = field(default_factory=deque, init=False)
    _starting: set[threading.Thread] = field(default_factory=set, init=False)
    _takers: int = field(default=0, init=False)
    _failure: Exception | None = field(default=None, init=False)
    _closed: bool = field(default=False, init=False)

    @property
    def ready(self) -> int:
        with self._changed:
            return sum(self.lives(each) for each in self._ready)

    def free_idle(self) -> None:
        """End all waiting processes to free device memory; those that start end once they are ready."""
        with self._changed:
            self._changed.wait_for(lambda: not self._starting, _CLOSE_S)
            processes = list(self._ready)
            self._ready.clear()
        for process in processes:
            process.end()

    def fill(self) -> None:
        """Start the missing processes, without waiting for them."""
        with self._changed:
            self._refill()

    def take(self, cancelled: threading.Event, build_dir: str | None = None) -> ProcessHandle:
        """Return a process, which then belongs to the caller; one with ``build_dir`` is started now.

        Raises Cancelled, ForkServerLost or StartFailed after two starts, and JudgeError.
        """
        if build_dir is not None:
            return self._start_in_two_attempts(build_dir)
        dead: list[ProcessHandle] = []
        try:
            return self._take(cancelled, dead)
        finally:
            for process in dead:  # this takes seconds if a supervisor hangs
                process.end()

    def _take(self, cancelled: threading.Event, dead: list[ProcessHandle]) -> ProcessHandle:
        """Return a process; add those that died while they waited to ``dead``."""
        with self._changed:
            if not self._takers:
                self._failure = None  # from a start that nobody waited for: try again
            self._takers += 1
            try:
                while not cancelled.is_set():
                    if (process := self._pop(dead)) is not None:
                        return process
                    if self._closed:
                        raise ForkServerLost("the judge is closing")
                    if self._failure is not None:
                        failure, self._failure = self._failure, None
                        raise failure
                    self._refill()
                    self._changed.wait(_LOOK_S)
                raise Cancelled
            finally:
                self._takers -= 1
                self._refill()

    def lives(self, process: ProcessHandle) -> bool:
        """Return True if a process lives; one of a dead fork server counts as dead before it ends."""
        return process.alive and process.generation == self._forks.generation

    def close(self) -> None:
        """End all waiting processes; those that are starting end as soon as they are ready."""
        with self._changed:
            self._closed = True
            threads, processes = list(self._starting), list(self._ready)
            self._ready.clear()
            self._changed.notify_all()
        for process in processes:
            process.end()
        deadline = time.monotonic() + _CLOSE_S
        for thread in threads:
            thread.join(max(deadline - time.monotonic(), 0.0))

    def _pop(self, dead: list[ProcessHandle]) -> ProcessHandle | None:
        """Return the first ready process that lives; move the ones before it to ``dead``."""
        while self._ready:
            process = self._ready.popleft()
            if self.lives(process):
                return process
            log.warning("a process died while it waited for a candidate")
            dead.append(process)
        return None

    @property
    def _wanted(self) -> int:
        scarce = self._leases is not None and self._leases.runs_alone
        return self._takers + (0 if scarce else self._target)

    def _refill(self) -> None:
        """Start the missing processes, each in a thread of its own; the caller holds the condition."""
        while not self._closed and len(self._ready) + len(self._starting) < self._wanted:
            thread = threading.Thread(target=self._add, name="start-process", daemon=True)
            self._starting.add(thread)
            thread.start()

    def _add(self) -> None:
        """Start one process; the next caller of :meth:`take` gets the exception if that fails."""
        process: ProcessHandle | None = None
        failure: Exception | None = None
        try:
            process = self._start_in_two_attempts(None)
        except (ForkServerLost, JudgeError) as error:
            failure = error
        with self._changed:
            surplus = len(self._ready) >= self._wanted
        if surplus and process is not None:
            process.end()  # before it no longer counts as starting
            process = None
        with self._changed:
            self._starting.discard(threading.current_thread())
            if not self._closed:
                self._failure = failure
                if process is not None:
                    self._ready.append(process)
                    process = None
            self._changed.notify_all()
        if process is not None:
            process.end()

    def _start_in_two_attempts(self, build_dir: str | None) -> ProcessHandle:
        try:
            try:
                return self._start(build_dir)
            except (ForkServerLost, StartFailed) as error:
                log.error("%s: the start of a process is tried again", error)
                return self._start(build_dir)
        except OSError as error:
            raise JudgeError(f"the judge cannot start a process: {error}") from error

    def _start(self, build_dir: str | None) -> ProcessHandle:
        spec = replace(self._spec, folder=self._forks.make_folder(), build_dir=build_dir)
        generation = self._forks.generation
        connection, process_end = channel.pair()
        lifeline, supervisors_end = channel.pair()
        with contextlib.ExitStack() as while_it_starts:
            try:
                with process_end, supervisors_end:
                    ends = process_end.fileno(), supervisors_end.fileno()
                    fork = partial(self._forks.fork_process, *ends, spec)
                    if self._leases is None:
                        pid = fork()
                    else:  # it starts CUDA right after the fork
                        pid = while_it_starts.enter_context(self._leases.starting(fork))
            except (ForkServerLost, JudgeError):
                connection.close()
                lifeline.close()
                shutil.rmtree(spec.folder, ignore_errors=True)
                raise
            process = ProcessHandle(connection, lifeline, pid, Path(spec.folder), generation)
            try:
                # the first message; the supervisor's next one reports the process's end
                sandbox = process.sandbox(_START_S)
                if sandbox is not None:
                    self._forks.note_sandbox(sandbox, spec.role)
                _wait_until_ready(process)
            except JudgeError as error:
                report = process.end(seems_dead=True)
                if not isinstance(error, StartFailed):
                    raise
                raise StartFailed(f"{error} ({report.how}) {report.printed[-500:]}".rstrip()) from None
        return process


def _wait_until_ready(process: ProcessHandle) -> None:
    if not is_readable(_START_S, process.connection, process.lifeline):
        raise StartFailed(f"a process was not ready for a candidate within {_START_S:.0f} s")
    try:
        Ready.from_json(Channel(process.connection, _FIRST_MESSAGE_BYTES).receive_json()[0])
    except (ChannelClosed, FrameError, ValueError) as error:
        raise StartFailed("a process died before it was ready for a candidate") from error
