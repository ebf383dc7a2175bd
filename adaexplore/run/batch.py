"""Run many tasks in parallel, one worker thread per task."""

import math
import queue
import threading
import time
from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Generic, TypeVar

from adaexplore.core.errors import AnswersPending, BudgetReached, Interrupted, ProblemError
from adaexplore.core.task import Task

DROP_AFTER_S = 10.0
"""Seconds that a step in flight may still take after a stop request."""
GRACE_S = 60.0
"""Seconds after ``max_wall_s`` at which steps in flight are stopped."""
_PAUSES = (Interrupted, AnswersPending, BudgetReached)
"""Errors after which other tasks finish their steps in flight; the batch raises the first kind found."""

T = TypeVar("T")


@dataclass(frozen=True)
class Progress(Generic[T]):
    """One event of a task: a result, such as a finished step, or the task's end, with its error if any."""

    task: Task
    result: T | None = None
    problem: ProblemError | None = None


def run_batch(
    work: Iterable[tuple[Task, Iterator[T]]],
    workers: int,
    stop: threading.Event,
    wall_s: float | None = None,
) -> Iterator[Progress[T]]:
    """Run ``workers`` tasks in parallel and yield their results as they arrive.

    A problem that cannot be judged ends only its own task. A task whose prompts wait in a mailbox is
    followed by the next task. When the budget is reached, every task finishes its steps in flight and
    starts no more. Any other error stops the whole batch. After ``stop`` the steps in flight have
    ``DROP_AFTER_S`` seconds to finish; then they are dropped. The files on disk are complete at any time.
    Steps still in flight ``GRACE_S`` after ``wall_s`` seconds are stopped in the same way.

    Raises:
        Interrupted: ``stop`` was set from outside, or a user stopped the run.
        AnswersPending: prompts of at least one task wait for answers.
        BudgetReached: at least one task reached the budget, or steps were stopped after ``wall_s``.
        Exception: the first error of a worker.
    """
    waiting = deque(work)
    news: queue.SimpleQueue[Progress[T] | Exception | None] = queue.SimpleQueue()
    running = max(1, min(workers, len(waiting)))
    for index in range(running):
        thread = threading.Thread(
            target=_drain, args=(waiting, news, stop), name=f"task-worker-{index}", daemon=True
        )
        thread.start()
    errors: list[Exception] = []
    too_late: BudgetReached | None = None
    dropped_at = math.inf
    last = math.inf if wall_s is None else time.monotonic() + wall_s + GRACE_S
    while running and time.monotonic() <= dropped_at:
        if time.monotonic() > last and not stop.is_set():
            too_late = BudgetReached(
                f"max_wall_s: {wall_s:g} s have passed, and steps in flight were stopped {GRACE_S:g} s later"
            )
            stop.set()
        if stop.is_set() and dropped_at == math.inf:
            dropped_at = time.monotonic() + DROP_AFTER_S
        try:
            item = news.get(timeout=0.2)
        except queue.Empty:
            continue
        if item is None:
            running -= 1
        elif isinstance(item, Progress):
            yield item
        else:
            errors.append(item)
            if not isinstance(item, _PAUSES):
                stop.set()
    for error in errors:
        if not isinstance(error, _PAUSES):
            raise error
    if too_late is not None:
        raise too_late
    if stop.is_set():
        raise Interrupted("stopped; the same command continues from here")
    for kind in _PAUSES:
        found = [error for error in errors if isinstance(error, kind)]
        if found:
            raise max(found, key=lambda error: error.prompts if isinstance(error, AnswersPending) else 0)


def _drain(
    waiting: deque[tuple[Task, Iterator[T]]],
    news: queue.SimpleQueue[Progress[T] | Exception | None],
    stop: threading.Event,
) -> None:
    """Run waiting tasks one after another; put None into ``news`` at the end."""
    try:
        while waiting and not stop.is_set():
            try:
                task, results = waiting.popleft()
            except IndexError:  # another worker took the last task
                break
            try:
                for result in results:
                    news.put(Progress(task, result))
            except ProblemError as problem:
                news.put(Progress(task, problem=problem))
            except AnswersPending as missing:
                news.put(missing)
            else:
                news.put(Progress(task))
    except Exception as error:  # noqa: BLE001 - handed to the main thread, which raises it
        news.put(error)
    finally:
        news.put(None)
