"""Many tasks at a time, one worker thread each."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from adaexplore.core.errors import AnswersPending, BudgetReached, Interrupted, ProblemError
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task

DROP_AFTER_S = 10.0
"""Seconds a step in flight may still take after a stop was asked for."""
GRACE_S = 60.0
"""Seconds after ``max_wall_s`` at which steps in flight are stopped."""


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
    wall_s: float | None = None,
) -> Iterator[Progress]:
    """Run ``work(task, worker index)`` over all tasks and yield what happens as it happens.

    A task whose problem cannot be judged ends alone, one whose prompts wait in a mailbox is followed by the
    next, and where the budget is reached every task ends its
    steps in flight and begins no more; any other error stops the whole batch. After
    ``stop`` the steps in flight get ``DROP_AFTER_S`` seconds to end, then they are dropped; what is
    on disk is whole at any time. Steps that are still in flight ``GRACE_S`` after ``wall_s`` seconds are
    stopped in the same way.

    Raises:
        Interrupted: ``stop`` was set from outside, or a person asked for the end.
        AnswersPending: prompts of at least one task wait.
        BudgetReached: at least one task could not go on, or steps were stopped after ``wall_s``.
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
                except AnswersPending as missing:
                    news.put(missing)
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
    pending: list[AnswersPending] = []
    asked: Interrupted | None = None
    deadline: float | None = None
    last = None if wall_s is None else time.monotonic() + wall_s + GRACE_S
    too_late: BudgetReached | None = None
    while count:
        if last is not None and time.monotonic() > last and not stop.is_set():
            too_late = BudgetReached(
                f"max_wall_s: {wall_s:g} s have passed, and steps in flight were stopped {GRACE_S:g} s later"
            )
            stop.set()
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
        elif isinstance(item, AnswersPending):
            pending.append(item)
        elif isinstance(item, Interrupted):
            asked = item
        elif first_error is None:
            first_error = item
            stop.set()
    if first_error is not None:
        raise first_error
    if too_late is not None:
        raise too_late
    if stop.is_set():
        raise Interrupted("stopped; the same command goes on from here")
    if asked is not None:
        raise asked
    if pending:
        raise max(pending, key=lambda each: each.prompts)
    if spent is not None:
        raise spent
