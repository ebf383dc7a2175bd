"""Many tasks at a time, one worker thread each."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from adaexplore.core.errors import BudgetReached, Interrupted, ProblemError
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task

DROP_AFTER_S = 10.0
"""Seconds a step in flight may still take after a stop was asked for."""


@dataclass(frozen=True)
class Progress:
    """News of one task: a finished step, or its end, with the error that kept it from running."""

    task: Task
    record: StepRecord | None = None
    problem: ProblemError | None = None


def run_batch(
    tasks: Sequence[Task],
    work: Callable[[Task, int], Iterator[StepRecord]],
    workers: int,
    stop: threading.Event,
) -> Iterator[Progress]:
    """Run ``work(task, worker index)`` over all tasks and yield what happens as it happens.

    A task whose problem cannot be judged ends alone, and where the budget is reached every task ends its
    steps in flight and begins no more; any other error stops the whole batch. After
    ``stop`` the steps in flight get ``DROP_AFTER_S`` seconds to end, then they are dropped; what is
    on disk is whole at any time.

    Raises:
        Interrupted: ``stop`` was set from outside, or a person asked for the end.
        BudgetReached: at least one task could not go on.
        Exception: the first error of a worker.
    """
    waiting: queue.SimpleQueue[Task] = queue.SimpleQueue()
    for task in tasks:
        waiting.put(task)
    news: queue.SimpleQueue[Progress | Exception | None] = queue.SimpleQueue()

    def worker(index: int) -> None:
        try:
            while not stop.is_set():
                try:
                    task = waiting.get_nowait()
                except queue.Empty:
                    break
                try:
                    for record in work(task, index):
                        news.put(Progress(task, record))
                except ProblemError as problem:
                    news.put(Progress(task, problem=problem))
                else:
                    news.put(Progress(task))
        except BudgetReached as reached:
            news.put(reached)
        except Exception as error:  # noqa: BLE001 - handed to the main thread, which raises it
            news.put(error)
        finally:
            news.put(None)

    count = max(1, min(workers, len(tasks)))
    for index in range(count):
        threading.Thread(target=worker, args=(index,), name=f"task-worker-{index}", daemon=True).start()
    first_error: Exception | None = None
    spent: BudgetReached | None = None
    asked: Interrupted | None = None
    deadline: float | None = None
    while count:
        if stop.is_set() and deadline is None:
            deadline = time.monotonic() + DROP_AFTER_S
        if deadline is not None and time.monotonic() > deadline:
            break
        try:
            item = news.get(timeout=0.2)
        except queue.Empty:
            continue
        if item is None:
            count -= 1
        elif isinstance(item, Progress):
            yield item
        elif isinstance(item, BudgetReached):
            spent = item
        elif isinstance(item, Interrupted):
            asked = item
        elif first_error is None:
            first_error = item
            stop.set()
    if first_error is not None:
        raise first_error
    if stop.is_set():
        raise Interrupted("stopped; the same command goes on from here")
    if asked is not None:
        raise asked
    if spent is not None:
        raise spent
