"""The evaluators of a slot: orders go to them, requests for leases and results come back."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from adaexplore.core.identity import text_digest
from adaexplore.core.wire import DeviceKind
from online_judge.processes.gpu_lease import GpuLeases, LeaseServer
from online_judge.processes.pool import Pool
from online_judge.processes.process_handle import ProcessHandle
from online_judge.protocol.channel import Channel, ChannelClosed, FrameError, is_readable
from online_judge.sandbox import linux
from online_judge.slots.conversation import WHOLE_MESSAGE_S

_KEPT, _KEPT_ON_GPU = 4, 2
"""Evaluators that a slot keeps, one per reference; each has a CUDA context of about half a GB."""
_PATIENCE_S = 10.0
_MAX_MESSAGE_BYTES = 64 * 2**20


class EvaluatorHandle:
    """Used from one thread at a time; what runs in the process is not trusted."""

    def __init__(self, process: ProcessHandle, leases: GpuLeases) -> None:
        """Take over a process that is ready; the leases that it asks for are taken from ``leases``."""
        self._process = process
        self._channel = Channel(process.connection, _MAX_MESSAGE_BYTES, max_fds=0, limit_s=WHOLE_MESSAGE_S)
        self.leases = LeaseServer(leases, self._channel.send_json)
        self._frozen: set[int] = set()
        self.ended = False

    def wake(self) -> bool:
        """Resume it; return whether it can take an order: it lives and has sent nothing unasked."""
        linux.go_on(self._frozen)
        return not self.ended and not is_readable(0, self._process.lifeline, self._channel)

    @property
    def stopped(self) -> bool:
        return self._process.stopped

    def order(self, order: dict[str, object], fds: Sequence[int]) -> None:
        """Send an order; raises ChannelClosed if it is gone."""
        self._channel.send_json(order, fds)

    def hear(self, timeout_s: float) -> dict[str, Any] | None:
        """Return its next message; None if none comes or it is about leases, which are handled here."""
        if self.ended:
            raise ChannelClosed("it was ended")
        if not is_readable(timeout_s, self._channel):
            return None
        try:
            message, _ = self._channel.receive_json()
        except FrameError as error:
            raise ChannelClosed(str(error)) from error
        if "lease" not in message:
            return message
        self.leases.obey(message)
        return None

    def settle(self) -> dict[str, Any] | None:
        """Return its late result, after its order was given up; end it if none comes."""
        message = self._await("result")
        return None if message is None else message["result"]

    def rest(self) -> None:
        """Have it free the memory shared with a candidate, and stop all its threads until the next order."""
        if self.ended:
            return
        try:
            self._channel.send_json({"op": "release"})
        except ChannelClosed:
            self.end()
            return
        if self._await("released") is not None:
            self._frozen = linux.stop_below([self._process.supervisor])

    def end(self) -> None:
        """Kill it, and return its leases when all its processes are gone."""
        if not self.ended:
            self.ended = True
            self._process.end()
            self.leases.close()

    def _await(self, key: str) -> dict[str, Any] | None:
        """Read until a message with ``key``; end it if none comes in time."""
        deadline = time.monotonic() + _PATIENCE_S
        try:
            while (remaining_s := deadline - time.monotonic()) > 0 and not self.stopped:
                message = self.hear(min(remaining_s, 1.0))
                if message is not None and key in message:
                    return message
        except ChannelClosed:
            pass
        self.end()
        return None


@dataclass(eq=False)
class Evaluators:
    """A slot's evaluators, one for each of the latest references."""

    _kind: DeviceKind
    _pool: Pool
    _leases: GpuLeases
    # by reference, the latest last
    _of: OrderedDict[str, EvaluatorHandle] = field(default_factory=OrderedDict, init=False)
    _unused: EvaluatorHandle | None = field(default=None, init=False)

    def start(self) -> None:
        """Take an evaluator for the first reference; raises JudgeError if none can be started."""
        self._unused = self._take(threading.Event())

    def of(self, reference: str, cancelled: threading.Event) -> EvaluatorHandle:
        """Return the evaluator that serves this reference and no other; raises as :meth:`Pool.take` does."""
        key = text_digest(reference)
        known = self._of.pop(key, None)
        if known is None:
            known, self._unused = self._unused, None
        if known is not None and not known.wake():
            known.end()
            known = None
        self._of[key] = known = known or self._take(cancelled)
        while len(self._of) > (_KEPT_ON_GPU if self._kind == "cuda" else _KEPT):
            _, oldest = self._of.popitem(last=False)
            threading.Thread(target=oldest.end, name="end-evaluator", daemon=True).start()
        return known

    def forget(self) -> None:
        """End those that have loaded a reference, which frees their memory on the device."""
        while self._of:
            self._of.popitem()[1].end()

    def close(self) -> None:
        self.forget()
        if self._unused is not None:
            self._unused.end()

    def _take(self, cancelled: threading.Event) -> EvaluatorHandle:
        return EvaluatorHandle(self._pool.take(cancelled), self._leases)
