"""Run several plans in parallel, one thread each; results are taken in the order of completion."""

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

from adaexplore.core.plan import Plan

T = TypeVar("T")


class InFlight(Generic[T]):
    """Plans in flight. One thread starts the work and takes the results.

    The threads are daemons: hanging work does not keep the process from exiting.
    """

    def __init__(self) -> None:
        self._plans: dict[int, Plan] = {}
        self._ended: queue.SimpleQueue[tuple[Plan, Future[T]]] = queue.SimpleQueue()

    def __len__(self) -> int:
        return len(self._plans)

    @property
    def plans(self) -> tuple[Plan, ...]:
        """The started plans whose result was not taken yet, in the order of their start."""
        return tuple(self._plans.values())

    def start(self, plan: Plan, work: Callable[[], T]) -> None:
        """Start work on ``plan``; after its result was taken, a plan may be started again."""
        self._plans[plan.step] = plan

        def do() -> None:
            future: Future[T] = Future()
            try:
                future.set_result(work())
            except BaseException as error:  # noqa: BLE001 - raised when the result is taken
                future.set_exception(error)
            self._ended.put((plan, future))

        threading.Thread(target=do, name=f"step-{plan.step}", daemon=True).start()

    def take(self) -> tuple[Plan, Future[T]]:
        """Wait for the next work that finishes; ``result()`` raises its error."""
        plan, future = self._ended.get()
        del self._plans[plan.step]
        return plan, future
