"""Several pieces of work at a time, each in a thread of its own, taken in the order in which they end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from adaexplore.core.plan import Plan

T = TypeVar("T")


class InFlight(Generic[T]):
    """The plans that are being worked on; used by one thread, which starts work and takes what came of it.

    The threads are daemons: work that hangs does not keep the process from ending.
    """

    def __init__(self) -> None:
        self._plans: dict[int, Plan] = {}
        self._ended: queue.SimpleQueue[tuple[Plan, Future[T]]] = queue.SimpleQueue()

    def __len__(self) -> int:
        return len(self._plans)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The plans whose work was started and not taken yet, in the order in which they were started."""
        return tuple(self._plans.values())

    def start(self, plan: Plan, work: Callable[[], T]) -> None:
        """Begin the work on ``plan``; a plan may come again after its work was taken."""
        self._plans[plan.step] = plan

        def do() -> None:
            future: Future[T] = Future()
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised where the result is asked for
                future.set_exception(error)
            self._ended.put((plan, future))

        threading.Thread(target=do, name=f"step-{plan.step}", daemon=True).start()

    def take(self) -> tuple[Plan, Future[T]]:
        """Wait for the next work that ends, whichever it is; its error is raised by ``result()``."""
        plan, future = self._ended.get()
        del self._plans[plan.step]
        return plan, future
