"""The evaluators of a slot: send them orders, receive requests for leases and results."""

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from adaexplore.core.errors import JudgeError
from adaexplore.core.text.identity import text_digest
from adaexplore.core.wire import DeviceKind
from online_judge.processes.gpu_lease import GpuLeases, LeaseServer
from online_judge.processes.pool import Pool
from online_judge.processes.process_handle import ProcessHandle
from online_judge.protocol import messages
from online_judge.protocol.channel import Channel, ChannelClosed, FrameError, is_readable
from online_judge.sandbox import linux
from online_judge.slots.conversation import WHOLE_MESSAGE_S

_KEPT, _KEPT_ON_GPU = 4, 2
"""Evaluators that a slot keeps, one per reference; each has a CUDA context of about half a GB."""
_PATIENCE_S = 10.0
_SURELY_STOPPED_S = 2.5
_MAX_MESSAGE_BYTES = 64 * 2**20


class EvaluatorFailed(JudgeError):
    """The judge's own code raised in the evaluator, or its result cannot be read."""


class EvaluatorHandle:
    """One evaluator, which is not trusted; used from one thread at a time."""

    def __init__(self, process: ProcessHandle, leases: GpuLeases) -> None:
        """Take over a process that is ready; it gets its leases from ``leases``."""
        self.process = process
        self._channel = Channel(process.connection, _MAX_MESSAGE_BYTES, max_fds=0, limit_s=WHOLE_MESSAGE_S)
        self.leases = LeaseServer(leases, self._channel.send_json, process.supervisor)
        self._device = leases
        self._op = ""  # of the latest order
        self._frozen: set[int] = set()
        self._stopped_since: float | None = None
        self.idle = False
        self.ended = False
        self.touched = False  # a candidate may have slowed it

    def wake(self) -> bool:
        """Resume it; return True if it can take an order: it lives and has sent nothing unasked."""
        self.idle = False
        linux.go_on(self._frozen)
        return not self.ended and not is_readable(0, self.process.lifeline, self._channel)

    @property
    def stopped(self) -> bool:
        """Whether it is stopped, and not by another evaluator that uses the device exclusively."""
        stopped = self.process.stopped
        if stopped:
            with self._device.unless_exclusive() as free:
                stopped = free and self.process.stopped
        if not stopped:
            self._stopped_since = None
            return False
        # the judge that stopped it may have been killed; then its leases wake it
        self._stopped_since = self._stopped_since or time.monotonic()
        return time.monotonic() - self._stopped_since > _SURELY_STOPPED_S

    def order(self, order: messages.Job, fds: Sequence[int]) -> None:
        """Send a job; raises ChannelClosed if it is gone."""
        self._op = order.op
        self._channel.send_json(order.to_json(), fds)

    def hear(self, timeout_s: float) -> messages.Clock | messages.Answer | None:
        """Return its next message; None if none arrived, or if it was about leases (handled here).

        An unreadable answer ends the evaluator and raises EvaluatorFailed, as does a lock file that fails.
        """
        if self.leases.trouble and not self.ended:
            self.end()
            raise EvaluatorFailed(f"the device's lock files cannot be used: {self.leases.trouble}")
        if self.ended or self.leases.failed:
            raise ChannelClosed("it was ended, or asked for leases in a way that cannot be")
        if not is_readable(timeout_s, self._channel):
            return None
        try:
            message, _ = self._channel.receive_json()
        except FrameError as error:
            raise ChannelClosed(str(error)) from error
        if "lease" in message:
            self.leases.obey(message)
            return None
        try:
            return messages.told(message, self._op)
        except (RecursionError, ValueError) as error:
            if "result" not in message:
                raise ChannelClosed("it sent what is no message of an evaluator") from error
            self.end()
            raise EvaluatorFailed("the evaluator's result cannot be read") from error

    def rest(self) -> None:
        """Have it free the memory shared with a candidate, and keep it stopped until the next order.

        An evaluator that keeps a lease is ended.
        """
        if self.ended:
            return
        try:
            self._op = "release"
            self._channel.send_json(messages.Release().to_json())
        except ChannelClosed:
            self.end()
            return
        if self.settle() is None:
            return
        if self.leases.are_returned():
            self._frozen = linux.stop_below([self.process.supervisor])
            self.idle = True
        else:
            self.end()

    def end(self) -> None:
        """Kill it; once all its processes are gone, return its leases."""
        if not self.ended:
            self.ended = True
            self.process.end()
            self.leases.close()

    def settle(self) -> messages.Answer | None:
        """Return the answer to the latest order; end the evaluator if it is late or unreadable."""
        deadline, stopped_s = time.monotonic() + _PATIENCE_S, self.leases.stopped_s()
        try:
            while not self.stopped:
                remaining_s = deadline + self.leases.stopped_s() - stopped_s - time.monotonic()
                if remaining_s <= 0:
                    break
                message = self.hear(min(remaining_s, 1.0))
                if isinstance(message, messages.Answer):
                    return message
        except (ChannelClosed, EvaluatorFailed):
            pass
        self.end()
        return None


@dataclass(eq=False)
class Evaluators:
    """A slot's evaluators, one for each of the latest references."""

    _kind: DeviceKind
    _pool: Pool
    _leases: GpuLeases
    # by reference, the most recent last
    _of: OrderedDict[str, EvaluatorHandle] = field(default_factory=OrderedDict, init=False)
    _unused: EvaluatorHandle | None = field(default=None, init=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, init=False)  # guards both

    def start(self) -> None:
        """Start an evaluator for the first reference; raises JudgeError if none can be started."""
        self._unused = self._take(threading.Event())

    def of(self, source: str, cancelled: threading.Event, *, untouched: bool = False) -> EvaluatorHandle:
        """Return the evaluator of this text, which runs no other; raises as :meth:`Pool.take` does.

        With ``untouched`` it has had no candidate.
        """
        key = text_digest(source)
        with self._lock:  # an evaluator that is awake is not freed
            known = self._of.pop(key, None)
            if known is None:
                known, self._unused = self._unused, None
            fits = known is not None and not (untouched and known.touched)
            if known is not None and not (fits and known.wake() and self._pool.lives(known.process)):
                known.end()
                known = None
        known = known or self._take(cancelled)
        with self._lock:
            self._of[key] = known
            most = _KEPT_ON_GPU if self._kind == "cuda" else _KEPT
            oldest = [self._of.popitem(last=False)[1] for _ in range(len(self._of) - most)]
        for each in oldest:
            threading.Thread(target=each.end, name="end-evaluator", daemon=True).start()
        return known

    def free_idle(self) -> None:
        """End all evaluators that do no job, to free device memory."""
        self._end_all(lambda each: each.idle)

    def close(self) -> None:
        self._end_all(lambda each: True)

    def _end_all(self, which: Callable[[EvaluatorHandle], bool]) -> None:
        """End those of the latest references that are meant, and the one without a reference."""
        with self._lock:
            ended = [self._of.pop(key) for key, each in list(self._of.items()) if which(each)]
            if self._unused is not None:
                ended.append(self._unused)
                self._unused = None
        for each in ended:
            each.end()

    def _take(self, cancelled: threading.Event) -> EvaluatorHandle:
        return EvaluatorHandle(self._pool.take(cancelled), self._leases)
