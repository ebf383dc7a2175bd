"""The bounded queue of all jobs: a job is queued or refused at once, and slots take the next one."""

from __future__ import annotations

import asyncio
import bisect
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from operator import attrgetter

from adaexplore.core.wire import DeviceQueue, QueueStatus
from online_judge.queue.job import Job
from online_judge.slots.jobs import EvaluationJob, Finding, Slot

Run = Callable[[Slot, EvaluationJob, threading.Event], Finding]
HEAD_START = 50
"""Turns that one step of priority is worth; a job that has waited for more turns is not overtaken."""
_RANK = attrgetter("rank")


class QueueFull(Exception):
    """No more jobs may wait."""


@dataclass(eq=False)
class _Group:
    """Slots that serve one queue, and its jobs."""

    slots: list[Slot]
    capacity: int  # most jobs that may wait
    waiting: list[Job] = field(default_factory=list)  # by rank
    running: dict[Job, Slot] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)
    turn: int = 0  # the highest turn that has been served

    @property
    def idle(self) -> int:
        """Return how many slots have no job; so many of the waiting jobs are about to start."""
        return len(self.slots) - len(self.running)

    def joined(self) -> Counter[str]:
        """Count by client the jobs that share an earlier job's evaluation: they wait, too."""
        leaders = [*self.waiting, *self.running]
        return Counter(job.caller.client for leader in leaders for job in leader.sharers[1:])


class Scheduler:
    """All jobs that wait or run; used from one event loop.

    Clients take turns. A job's turn is one more than the highest turn among its client's waiting jobs of the
    same priority; if the client has none, one more than the turn that is being served. So the first job of a
    new client goes before the backlog of another client. A job's rank is its turn, less :data:`HEAD_START`
    for each step of priority; the lowest rank starts first.
    """

    def __init__(
        self,
        slots: Sequence[Slot],
        max_queue_size: int,
        run: Run,
        *,
        pinned: bool = False,
        compile_slots: Sequence[Slot] = (),
    ) -> None:
        """Start nothing yet.

        Args:
            slots: one or more for each device.
            max_queue_size: most jobs that may wait per device, and for the compile slots.
            run: runs a job on a slot; blocks.
            pinned: whether each job names its device; else any device serves any job.
            compile_slots: for jobs of kind ``compile``.
        """
        self._max_queue_size = max_queue_size
        self._run = run
        per_device: defaultdict[int, list[Slot]] = defaultdict(list)
        for slot in slots:
            per_device[slot.device.id].append(slot)
        self._max_concurrent = max(map(len, per_device.values()), default=0)
        if pinned:
            self._of_device = {device: _Group(own, max_queue_size) for device, own in per_device.items()}
        else:
            everyone = _Group(list(slots), max_queue_size * len(per_device))
            self._of_device = dict.fromkeys(per_device, everyone)
        self._groups = list(dict.fromkeys(self._of_device.values()))
        self._compilers = _Group(list(compile_slots), max_queue_size)
        self._all = (*self._groups, self._compilers)
        self._identical: dict[Hashable, Job] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._executor = ThreadPoolExecutor(max(len(slots) + len(compile_slots), 1), "slot")

    def start(self) -> None:
        for group in self._all:
            self._tasks += [asyncio.create_task(self._serve(slot, group)) for slot in group.slots]

    async def close(self) -> None:
        """Cancel all jobs and close the slots."""
        for group in self._all:
            for job in group.waiting:
                job.cancelled.set()
            group.waiting.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._executor.shutdown)
        for group in self._all:
            for slot in group.slots:
                slot.close()

    def submit(self, job: Job, *, accepted_before: bool = False) -> None:
        """Queue a job, or let it share the evaluation of an identical one, at the higher of both priorities.

        Raises QueueFull if no slot is free and no more jobs may wait, in all or of this client; not for a job
        that was ``accepted_before``.
        """
        group = self._group(job)
        if not accepted_before:
            self._require_space(group, job)
        identity = _identity(job)
        leader = None if identity is None or job.force else self._identical.get(identity)
        if leader is not None:
            job.leader = leader
            leader.sharers.append(job)
            rank = leader.turn - HEAD_START * job.priority
            if rank < leader.rank and leader in group.waiting:
                group.waiting.remove(leader)
                leader.rank = rank
                bisect.insort(group.waiting, leader, key=_RANK)
            return
        if identity is not None:
            self._identical[identity] = job
        job.sharers = [job]
        whose = (job.caller.client, job.priority)
        own = (each.turn for each in group.waiting if (_client(each), each.priority) == whose)
        job.turn = max(own, default=group.turn) + 1
        job.rank = job.turn - HEAD_START * job.priority
        bisect.insort(group.waiting, job, key=_RANK)
        group.wake.set()

    def withdraw(self, job: Job) -> bool:
        """Remove a job; cancel its evaluation if no other job shares it.

        Return whether the evaluation was cancelled and still runs.
        """
        leader, group = job.leader, self._group(job)
        if job not in leader.sharers or leader.ended.is_set():
            return False
        leader.sharers.remove(job)
        if leader.sharers:
            return False
        leader.cancelled.set()
        self._forget_identity(leader)
        if leader in group.waiting:
            group.waiting.remove(leader)
            leader.started.set()
        return leader in group.running

    def position(self, job: Job) -> int:
        """Return how many jobs wait in front of a job; 0 if it runs or is about to."""
        group = self._group(job)
        if job.leader not in group.waiting:
            return 0
        return max(group.waiting.index(job.leader) - group.idle, 0)

    def oldest_s(self) -> float:
        """Return the age of the job that has waited longest for a device; 0 if none waits."""
        waiting = (job.created for group in self._groups for job in group.waiting)
        return max((time.monotonic() - created for created in waiting), default=0.0)

    def status(self) -> QueueStatus:
        """Return the load of the devices; jobs that any device may serve are spread evenly over them."""
        per_device: dict[str, DeviceQueue] = {}
        for group in self._groups:
            slots = Counter(slot.device.id for slot in group.slots)
            busy = Counter(slot.device.id for slot in group.running.values())
            present = len(group.waiting)
            waiting = max(present - group.idle, 0) + group.joined().total()
            starting = min(present, group.idle)
            share, rest = divmod(waiting, len(slots))
            for position, device in enumerate(slots):
                soon = min(slots[device] - busy[device], starting)
                starting -= soon
                per_device[str(device)] = DeviceQueue(
                    queued=share + (position < rest),
                    processing=busy[device] + soon,
                    max_concurrent=self._max_concurrent,
                )
        return QueueStatus(
            total_queued=sum(load.queued for load in per_device.values()),
            total_processing=sum(load.processing for load in per_device.values()),
            per_device=per_device,
            max_concurrent=self._max_concurrent,
            max_queue_size=self._max_queue_size,
        )

    def _group(self, job: Job) -> _Group:
        if job.kind == "compile":
            return self._compilers
        return self._groups[0] if job.device is None else self._of_device.get(job.device, self._groups[0])

    def _require_space(self, group: _Group, job: Job) -> None:
        joined, idle = group.joined(), group.idle
        if len(group.waiting) + joined.total() >= group.capacity + idle:
            raise QueueFull(f"Queue is full. Max queue size: {self._max_queue_size}")
        client, most = job.caller.client, job.caller.max_queued
        own = sum(_client(each) == client for each in group.waiting)
        if most is not None and max(own - idle, 0) + joined[client] >= most:
            raise QueueFull(f"Client {client} has {most} waiting jobs, as many as it may have")

    def _forget_identity(self, job: Job) -> None:
        self._identical = {key: leader for key, leader in self._identical.items() if leader is not job}

    async def _next(self, group: _Group) -> Job:
        while not group.waiting:
            group.wake.clear()
            await group.wake.wait()
        job = group.waiting.pop(0)
        group.turn = max(group.turn, job.turn)
        return job

    async def _serve(self, slot: Slot, group: _Group) -> None:
        loop = asyncio.get_running_loop()
        while True:
            job = await self._next(group)
            assert job.request is not None
            group.running[job] = slot
            job.started_at = time.monotonic()
            job.started.set()
            asked = EvaluationJob(job.kind, job.request, job.recorded_ms)
            running = loop.run_in_executor(self._executor, self._run, slot, asked, job.cancelled)
            try:
                job.outcome = await asyncio.shield(running)
            except asyncio.CancelledError:
                job.cancelled.set()
                await asyncio.wait({running})
                running.exception()
                raise
            except Exception as error:  # noqa: BLE001 - it is the job's outcome
                job.outcome = error
            finally:
                del group.running[job]
                self._forget_identity(job)
                job.request = None
                job.ended.set()


def _client(leader: Job) -> str:
    """Return the client that an evaluation is counted for: the first that still waits for it."""
    return leader.sharers[0].caller.client


def _identity(job: Job) -> Hashable | None:
    """Return a key that is equal for jobs that may share an evaluation; None if this job may not."""
    if job.question is None or job.request is None:
        return None
    best_so_far = getattr(job.request, "best_so_far", None)  # a timing may stop early because of it
    return job.question.exact, job.request.timeout, job.device, best_so_far
