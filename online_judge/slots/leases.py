"""Leases of a device for one evaluator: it asks over its channel, the gateway takes and returns them."""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, ExitStack
from typing import Any, Final

from online_judge.processes.device_lock import DeviceLock
from online_judge.protocol.channel import ChannelClosed
from online_judge.sandbox import linux

log = logging.getLogger(__name__)

_DEPTH: Final = 8


class EvaluatorLeases:
    """Does what an evaluator asks for, in a thread of its own, in the order in which it was asked.

    Messages of the evaluator: ``{"lease": "take", "kind": kind}``, answered by ``{"granted": seconds}``, its
    waiting time, as soon as the lease is there; ``{"lease": "return"}``, which returns the one taken last;
    ``{"lease": "stopped_s"}``, answered by ``{"stopped_s": seconds}``. Kinds: ``shared`` or ``exclusive``,
    use of the device; ``timing_memory``; ``stoppable``, exclusive users stop the candidate meanwhile;
    ``stopped``, the candidate is stopped.
    """

    def __init__(self, lock: DeviceLock, answer: Callable[[dict[str, Any]], None]) -> None:
        """Nothing is taken yet; ``answer`` sends a message to the evaluator."""
        self.supervisor = 0
        """Process id above the candidate's; what is stopped is below it."""
        self._lock = lock
        self._answer = answer
        self._asked: queue.SimpleQueue[Mapping[str, Any] | None] = queue.SimpleQueue()
        self._closed = False
        self._waited_s = 0.0
        self._waiting_since: float | None = None
        self._kinds: dict[object, Callable[[], AbstractContextManager[object]]] = {
            "shared": lambda: lock.hold(exclusive=False),
            "exclusive": lambda: lock.hold(exclusive=True),
            "timing_memory": lock.timing_memory,
            "stoppable": lambda: lock.stoppable(self.supervisor),
            "stopped": lambda: linux.stopped_below(self.supervisor),
        }
        threading.Thread(target=self._work, name="leases", daemon=True).start()

    def obey(self, message: Mapping[str, Any]) -> None:
        """Take in one message; returns at once."""
        if message["lease"] == "take":
            self._waiting_since = time.monotonic()
        self._asked.put(message)

    def waited_s(self) -> float:
        """Return the seconds for which the evaluator has waited for leases so far."""
        since = self._waiting_since
        return self._waited_s + (time.monotonic() - since if since is not None else 0.0)

    def close(self) -> None:
        """Return everything, what is still waited for as soon as it comes; the evaluator must be gone."""
        self._closed = True
        self._asked.put(None)

    def _work(self) -> None:
        try:
            with ExitStack() as all_taken:
                taken: list[ExitStack] = []
                while (message := self._asked.get()) is not None and not self._closed:
                    self._do(message, taken, all_taken)
        except (ChannelClosed, OSError, ValueError, RuntimeError) as error:
            log.warning("an evaluator gets no more leases: %s", error)
        finally:
            self._end_wait()

    def _do(self, message: Mapping[str, Any], taken: list[ExitStack], all_taken: ExitStack) -> None:
        match message["lease"]:
            case "take" if len(taken) < _DEPTH and message.get("kind") in self._kinds:
                lease = ExitStack()
                all_taken.push(lease)
                taken.append(lease)
                lease.enter_context(self._kinds[message["kind"]]())
                waited_s = self._end_wait()
                if not self._closed:
                    self._answer({"granted": waited_s})
            case "return" if taken:
                taken.pop().close()
            case "stopped_s":
                self._answer({"stopped_s": self._lock.stopped_s()})
            case _:
                raise ValueError(f"it asked for {str(message)[:100]}")

    def _end_wait(self) -> float:
        since, self._waiting_since = self._waiting_since, None
        waited_s = 0.0 if since is None else time.monotonic() - since
        self._waited_s += waited_s
        return waited_s
