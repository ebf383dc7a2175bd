"""Leases of one device, granted by its owner in the gateway.

A job runs beside any number of others, beside a few if it lacked memory, or ``alone``. During its job an
evaluator holds the device ``shared`` while it or its candidate may use it, and ``exclusive`` while it times
something. An exclusive holder stops the processes of all shared holders with SIGSTOP. It need not wait for
them, only for the work that the GPU has queued, see :meth:`Stopwatch.wait_for_quiet`. If that work does not
end soon, it waits until all shared holders have returned the device instead.
"""

import contextlib
import fcntl
import logging
import os
import queue
import struct
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from io import FileIO
from pathlib import Path
from typing import Any, Final, get_args

from online_judge.protocol.channel import ChannelClosed
from online_judge.protocol.messages import Granted, Lease, Mode, Stopped
from online_judge.sandbox import linux

log = logging.getLogger(__name__)

_LOOK_S: Final = 0.25
_ANY: Final = 2**31
"""More jobs than ever run at a time."""
FEW: Final = 2
"""Other jobs beside one that lacked memory beside more."""
_REMEMBERED: Final = 8
"""Number of jobs of a problem that run beside few others, or alone, after one of them lacked memory."""
_TIMINGS: Final = 3
"""Jobs that hold memory for timing: one is timed, one has its inputs ready, one has its outputs compared.

``evaluator/timing/setup.py`` limits how much each takes.
"""
_CORES_OF_A_SWEEP: Final = 8
_compiling = threading.Semaphore(max((os.cpu_count() or 1) // _CORES_OF_A_SWEEP, 1))
"""Sweeps that compile, of all devices: they share the machine's cores."""
_WAKE_S: Final = 1.0
_POLL_S: Final = 0.02
_MOST_TAKEN: Final = 8
_MOST_WAITING: Final = 64  # most unanswered messages of an evaluator; an honest one waits for each answer
_RETURN_S: Final = 5.0
_ONCE: Final = ("memory", "timing_memory", "compiling", "stopped")
"""Modes of which an evaluator may hold one lease: a second would wait for the first, or end it early."""
_BEFORE_THE_DEVICE: Final = ("timing_memory", "compiling")
_SECONDS: Final = struct.Struct("d")


class Cancelled(Exception):
    """No client needs the result any more."""


class NotEnoughMemory(Exception):
    """The device had too little memory for this job beside others."""


def _wait_in_turn(
    changed: threading.Condition,
    waiting: list[object],
    fits: Callable[[], bool],
    is_given_up: Callable[[], bool],
) -> bool:
    """Wait behind those that are ``waiting`` until the caller ``fits``; False if it gives up before.

    The caller holds ``changed``.
    """
    caller = object()
    waiting.append(caller)
    try:
        while waiting[0] is not caller or not fits():
            if is_given_up():
                return False
            changed.wait(_LOOK_S)
        return True
    finally:
        waiting.remove(caller)
        changed.notify_all()


class _Shares:
    """Parts of a whole, granted in the order of the requests; the first holder may have any part."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._held: list[float] = []
        self._waiting: list[object] = []

    @contextmanager
    def hold(self, share: float, is_gone: Callable[[], bool]) -> Iterator[None]:
        """Hold a part within the block; raises ChannelClosed if the holder ``is_gone`` before."""

        def fits() -> bool:
            return not self._held or sum(self._held) + share <= 1.0

        with self._changed:
            if not _wait_in_turn(self._changed, self._waiting, fits, is_gone):
                raise ChannelClosed("it is gone")
            self._held.append(share)
        try:
            yield
        finally:
            with self._changed:
                self._held.remove(share)
                self._changed.notify_all()


class GpuLeases:
    """Owner of one device's leases; safe to use from threads.

    :meth:`claim` keeps the jobs of this judge apart. Leases within jobs are file locks, so other judges of
    this user obey them too; the kernel makes callers wait, and releases the locks of a dead judge.
    """

    def __init__(self, path: str | Path) -> None:
        """Use ``path``, and files whose names begin with it, as locks; create those that are missing."""
        # called before a job that lacked memory runs again: each frees the memory of a slot's idle evaluators
        self.on_scarcity: list[Callable[[], object]] = []
        # called as well before a job runs alone: each frees the memory of a pool's waiting processes
        self.on_alone: list[Callable[[], object]] = []
        self._path = os.fspath(path)
        self._turnstile = f"{path}.turn"
        self._account = f"{path}.stopped"  # seconds for which processes have been stopped, by all judges
        self._since = f"{path}.since"  # the clock's time when the latest stop began
        self._registry = f"{path}.stoppable"  # a file for each process whose descendants use it shared
        for name in (self._path, self._turnstile, self._account, self._since):
            _open(name).close()
        self._stopping_since: float | None = None  # of this judge
        self._accounting = threading.Lock()
        self._memory = _Shares()
        self._timings = threading.Semaphore(_TIMINGS)
        self._condition = threading.Condition()
        self._running: list[int] = []  # for each running job, how many others may run beside it
        self.most_running = 0  # so far
        self._waiting_jobs: list[object] = []
        self._large: dict[str, list[int]] = {}  # by problem, the same number for each of its next jobs

    @contextmanager
    def claim(self, problem: str, cancelled: threading.Event, *, others: int | None = None) -> Iterator[int]:
        """Let one job use the device within the block, beside at most ``others``; yield that number.

        It is large by default, and what :meth:`remember` said for the next jobs of a problem. A job with
        ``others`` is one that lacked memory, so memory is freed before. Jobs begin in the order of their
        calls. Raises Cancelled if ``cancelled`` is set before the job begins.
        """
        with self._condition:
            limit = self._limit_of_next(problem) if others is None else others

            def fits() -> bool:
                return len(self._running) <= min([limit, *self._running])

            if not _wait_in_turn(self._condition, self._waiting_jobs, fits, cancelled.is_set):
                raise Cancelled
            self._running.append(limit)
            self.most_running = max(self.most_running, len(self._running))
        try:
            if others is not None or limit == 0:
                for free in [*self.on_scarcity, *(self.on_alone if limit == 0 else ())]:
                    free()
            yield limit
        finally:
            with self._condition:
                self._running.remove(limit)
                self._condition.notify_all()

    @property
    def runs_alone(self) -> bool:
        """Return True if a job runs alone on the device, for lack of memory."""
        with self._condition:
            return 0 in self._running

    def _limit_of_next(self, problem: str) -> int:
        left = self._large.get(problem, [])
        limit = left.pop() if left else _ANY
        if not left:
            self._large.pop(problem, None)
        return limit

    def remember(self, problem: str, others: int) -> None:
        """Let the next jobs of a problem run beside at most ``others``, because one lacked memory."""
        with self._condition:
            self._large[problem] = [min([others, *self._large.get(problem, [])])] * _REMEMBERED

    def forget(self, problem: str) -> None:
        """Let jobs of a problem run beside others again, because the candidate was at fault."""
        with self._condition:
            self._large.pop(problem, None)

    @property
    def waiting(self) -> int:
        return len(self._waiting_jobs)

    @contextmanager
    def take(
        self,
        mode: Mode,
        roots: Collection[int] = (),
        held: Mode | None = None,
        share: float = 0.0,
        is_gone: Callable[[], bool] = lambda: False,
        *,
        drained: bool = False,
    ) -> Iterator[float]:
        """Hold a lease within the block; yield the seconds waited for it.

        Modes:

        - ``shared``: use of the device; all processes below the process ids ``roots`` are stopped while
          others use it exclusively;
        - ``exclusive``: use of the device by nobody else; if ``drained``, shared users are not stopped but
          return it first;
        - ``memory``: ``share`` of what jobs may need together; take it before ``timing_memory``;
        - ``timing_memory``: memory for timing; take it before the device;
        - ``compiling``: cores to compile configurations with;
        - ``stopped``: all processes below ``roots`` are stopped within the block.

        A caller that ``is_gone`` no longer waits for memory or shared users: it raises ChannelClosed.
        ``held`` is the mode in which the caller uses the device already. Then ``shared`` and ``exclusive``
        lock nothing more; ``exclusive`` inside ``shared`` raises RuntimeError.
        """
        begin = time.monotonic()
        with ExitStack() as lease:
            if mode == "memory":
                lease.enter_context(self._memory.hold(share if 0 <= share <= 1 else 1.0, is_gone))
            elif mode == "timing_memory":
                lease.enter_context(self._timings)
            elif mode == "compiling":
                lease.enter_context(_compiling)
            elif mode == "stopped":
                lease.callback(linux.go_on, linux.stop_below(roots))
            elif held is None and mode == "exclusive":
                lease.enter_context(self._locked(fcntl.LOCK_EX))
                if drained:
                    self._wait_for_shared_users(is_gone)
                else:
                    lease.enter_context(self._others_stopped())
            elif held is None:
                with self._locked(fcntl.LOCK_SH):  # not while something is timed
                    for root in roots:
                        lease.enter_context(self._registered(root))
            elif held == "shared" and mode == "exclusive":
                raise RuntimeError("shared use of a device cannot become exclusive")
            yield time.monotonic() - begin

    @contextmanager
    def starting(self, fork: Callable[[], int]) -> Iterator[int]:
        """Fork a process while nobody uses the device exclusively, and yield its id.

        Within the block the processes below it use the device shared.
        """
        with ExitStack() as lease:
            with self._locked(fcntl.LOCK_SH):
                lease.enter_context(self._registered(pid := fork()))
            yield pid

    def wake(self, roots: Collection[int]) -> None:
        """Resume processes below ``roots`` if a judge that had stopped them was killed."""
        with self.unless_exclusive() as free:
            if free:
                _resume(roots)

    @contextmanager
    def unless_exclusive(self) -> Iterator[bool]:
        """Yield whether nobody uses the device exclusively; if so, nobody will within the block."""
        with _open(self._path) as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
            except BlockingIOError:
                yield False
                return
            try:
                yield True
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)

    def stopped_s(self) -> float:
        """Return the total seconds for which exclusive users have stopped shared ones."""
        with self._accounting:
            since, total_s = self._stopping_since, _seconds_in(self._account)
        if since is None and (noted := _seconds_in(self._since)):
            with self.unless_exclusive() as free:
                since = None if free else noted  # another judge's; left behind if that was killed
        return total_s + (time.monotonic() - since if since is not None else 0.0)

    @contextmanager
    def _locked(self, operation: int) -> Iterator[None]:
        """Hold the device's file lock within the block.

        Each caller takes a turnstile lock first and releases it once it has the device's lock. So a caller
        that waits for exclusive use blocks all later callers, and neither kind starves the other.
        """
        os.makedirs(self._registry, mode=0o700, exist_ok=True)  # somebody may have removed it
        with _open(self._path) as lock:
            with _open(self._turnstile) as turn:
                fcntl.flock(turn, fcntl.LOCK_EX)
                fcntl.flock(lock, operation)
                fcntl.flock(turn, fcntl.LOCK_UN)
            try:
                yield
            finally:
                fcntl.flock(lock, fcntl.LOCK_UN)  # even if a forked child has the descriptor

    @contextmanager
    def _registered(self, root: int) -> Iterator[None]:
        """Let exclusive users stop the processes below ``root`` within the block."""
        entry = Path(self._registry, str(root))
        with _open(os.fspath(entry)) as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            try:
                yield
            finally:
                entry.unlink(missing_ok=True)
                fcntl.flock(file, fcntl.LOCK_UN)
                _resume([root])  # it was stopped after it had returned the device

    @contextmanager
    def _others_stopped(self) -> Iterator[None]:
        begin = time.monotonic()
        try:
            with self._accounting:
                self._stopping_since = begin
                _write_seconds(self._since, begin)
            roots = self._shared_users()
            linux.stop_below(roots)
            _resume(set(roots).difference(self._shared_users()))  # they have returned it meanwhile
            yield
        finally:
            with self._accounting:
                self._stopping_since = None
                with contextlib.suppress(OSError):
                    _write_seconds(self._account, _seconds_in(self._account) + time.monotonic() - begin)
                    _write_seconds(self._since, 0.0)
            _resume(self._shared_users())

    def _wait_for_shared_users(self, is_gone: Callable[[], bool]) -> None:
        """Wait until all have returned the device; those that a killed judge had stopped are resumed."""
        _write_seconds(self._since, 0.0)
        _resume(self._shared_users())
        while self._shared_users():
            if is_gone():
                raise ChannelClosed("it is gone")
            time.sleep(_POLL_S)

    def _shared_users(self) -> list[int]:
        """Return the process ids in the registry; remove those of dead judges."""
        found = []
        for name in filter(str.isdigit, os.listdir(self._registry)):
            entry = os.path.join(self._registry, name)
            with contextlib.suppress(OSError), _open(entry) as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    found.append(int(name))
                else:
                    os.unlink(entry)
        return found


class LeaseServer:
    """The gateway's side of one evaluator's leases: a thread takes and returns them on request.

    All leases of the evaluator end if it sends anything but a :class:`Lease`, asks for a second lease of a
    mode in ``_ONCE``, for memory or cores while it holds what others wait for, or to stop a candidate when
    there is none or the device is not held exclusively.
    """

    def __init__(
        self, device: GpuLeases, answer: Callable[[dict[str, object]], None], supervisor: int = 0
    ) -> None:
        """Take nothing yet; ``answer`` sends a message to the evaluator, whose supervisor is a process id."""
        self.candidate = 0  # process id of the candidate's supervisor; 0 without a candidate
        self.failed = False  # whether all leases have ended, so that the evaluator must end too
        self.trouble = ""  # of the judge with its lock files, which is why they have ended
        self._device = device
        self._answer = answer
        self._supervisor = supervisor
        self._asked: queue.SimpleQueue[Mapping[str, Any] | Future[bool] | None] = queue.SimpleQueue()
        self._lock = threading.Lock()  # guards the waits
        self._taken: list[tuple[Mode, ExitStack]] = []
        self._closed = False
        self.waits: dict[str, float] = {}  # seconds waited, by mode
        self._waiting_for = ""
        self._waiting_since: float | None = None
        self._stopped_s = 0.0  # so far
        # as the present shared use began: the clock, the device's seconds of stops, and ``_stopped_s``
        self._shared_from: tuple[float, float, float] | None = None
        threading.Thread(target=self._work, name="leases", daemon=True).start()

    def obey(self, message: Mapping[str, Any]) -> None:
        """Queue one message of the evaluator and return; raises ChannelClosed if it has sent too many."""
        if self._asked.qsize() >= _MOST_WAITING:
            raise ChannelClosed("it asks for leases without end")
        with self._lock:
            if message["lease"] == "take" and not self.failed:
                self._waiting_for = next((mode for mode in get_args(Mode) if mode == message.get("kind")), "")
                self._waiting_since = time.monotonic()
        self._asked.put(message)

    def are_returned(self) -> bool:
        """Whether the evaluator, after its messages so far, holds no lease and waits for none."""
        answer: Future[bool] = Future()
        self._asked.put(answer)
        with contextlib.suppress(TimeoutError):
            return not self.failed and answer.result(_RETURN_S) and not self.failed
        return False

    def waited_s(self) -> float:
        """Return the total seconds for which the evaluator has waited for leases."""
        with self._lock:
            since = self._waiting_since
            return sum(self.waits.values()) + (time.monotonic() - since if since is not None else 0.0)

    def stopped_s(self) -> float:
        """Return the total seconds for which others' exclusive use has stopped the evaluator's processes."""
        with self._lock:
            if self._shared_from is not None:
                begin, of_device, before = self._shared_from
                present_s = min(self._device.stopped_s() - of_device, time.monotonic() - begin)
                # a judge that is killed accounts for no stop, so the device's seconds may drop
                self._stopped_s = max(self._stopped_s, before + present_s)
            return self._stopped_s

    def close(self) -> None:
        """Return all leases, and a pending one once it is granted; the evaluator must be gone."""
        self._closed = True
        self._asked.put(None)

    def _work(self) -> None:
        try:
            with ExitStack() as all_taken:
                while (message := self._next()) is not None and not self._closed:
                    if isinstance(message, Future):
                        message.set_result(not self._taken)
                    else:
                        self._obey(message, all_taken)
        except (ChannelClosed, OSError, ValueError, RuntimeError) as error:
            if not self._closed:
                log.warning("an evaluator gets no more leases: %s", error)
                self.trouble = str(error) if isinstance(error, OSError) else ""
        finally:
            self.failed = True
            self._end_wait()

    def _next(self) -> Mapping[str, Any] | Future[bool] | None:
        """Return the next message; meanwhile wake processes if the judge that stopped them was killed."""
        while True:
            wakes = "shared" in (mode for mode, _ in self._taken)
            with contextlib.suppress(queue.Empty):
                return self._asked.get(timeout=_WAKE_S if wakes else None)
            self._device.wake(self._roots)

    @property
    def _roots(self) -> list[int]:
        return [pid for pid in (self._supervisor, self.candidate) if pid]

    def _obey(self, message: Mapping[str, Any], all_taken: ExitStack) -> None:
        match Lease.from_json(message):
            case Lease(lease="take", kind=kind) as wanted if kind and len(self._taken) < _MOST_TAKEN:
                if kind in _ONCE and kind in (mode for mode, _ in self._taken):
                    raise ValueError(f"it asked twice for {kind}")
                held = next((mode for mode, _ in self._taken if mode in ("shared", "exclusive")), None)
                if kind == "stopped" and not (self.candidate and held == "exclusive"):
                    raise ValueError(f"it asked for {kind} without a candidate or exclusive use")
                lease = all_taken.enter_context(ExitStack())
                if (held and kind in _BEFORE_THE_DEVICE) or (kind == "memory" and self._taken):
                    raise ValueError(f"it asked for {kind} too late, so others could wait for each other")
                roots = [self.candidate] if kind == "stopped" else self._roots
                counts = kind == "shared" and held is None
                if counts:
                    lease.callback(self._end_count)
                take = self._device.take(
                    kind, roots, held, wanted.share, lambda: self._closed, drained=wanted.drained
                )
                lease.enter_context(take)
                if counts:
                    self._begin_count()
                self._taken.append((kind, lease))
                waited_s = self._end_wait()
                if not self._closed:
                    self._answer(Granted(granted=waited_s).to_json())
            case Lease(lease="return") if self._taken:
                self._taken.pop()[1].close()
            case Lease(lease="stopped_s"):
                self._answer(Stopped(stopped_s=self.stopped_s()).to_json())
            case _:
                raise ValueError(f"it asked for {str(message)[:100]}")

    def _begin_count(self) -> None:
        """Count stops from now on."""
        with self._lock:
            self._shared_from = time.monotonic(), self._device.stopped_s(), self._stopped_s

    def _end_count(self) -> None:
        self.stopped_s()
        with self._lock:
            self._shared_from = None

    def _end_wait(self) -> float:
        with self._lock:
            since, self._waiting_since = self._waiting_since, None
            waited_s = 0.0 if since is None else time.monotonic() - since
            if since is not None and self._waiting_for:
                before_s = self.waits.get(self._waiting_for, 0.0)
                self.waits = self.waits | {self._waiting_for: before_s + waited_s}
            return waited_s


def _resume(roots: Collection[int]) -> None:
    """Resume all stopped processes below ``roots``."""
    if any(linux.is_stopped(child) for root in roots for child in linux.children(root)):
        linux.go_on([pid for pid in linux.descendants(*roots) if linux.is_stopped(pid)])


def _seconds_in(path: str) -> float:
    with contextlib.suppress(OSError, struct.error):
        return float(_SECONDS.unpack(Path(path).read_bytes())[0])
    return 0.0


def _write_seconds(path: str, seconds: float) -> None:
    with _open(path) as file:
        file.write(_SECONDS.pack(seconds))


def _open(path: str) -> FileIO:
    flags = os.O_CREAT | os.O_NOFOLLOW
    return FileIO(path, "r+", opener=lambda name, mode: os.open(name, mode | flags, 0o600))
