"""The bounded queue of all jobs: a job is queued or refused at once, and free slots take the next one."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor

from adaexplore.core.wire import DeviceQueue, QueueStatus
from online_judge.queue.job import Job
from online_judge.queue.placement import HEAD_START, Group
from online_judge.slots.jobs import EvaluationJob, Finding, Slot, WorkerLost

Run = Callable[[Slot, EvaluationJob, threading.Event], Finding]
_MOST_THREADS = 4096
"""Most slots that run at the same time, each in a thread."""


class QueueFull(Exception):
    """No more jobs may wait."""


class Scheduler:
    """All jobs that wait or run; used from one event loop. See :class:`Group` for their order."""

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
            pinned: whether each job names its device; else any device can serve any job.
            compile_slots: for jobs of kind ``compile``.
        """
        self._max_queue_size = max_queue_size
        self._run = run
        self._of_device: dict[int, Group] = {}
        everyone = None if pinned and slots else Group(max_queue_size)
        for slot in slots:
            own = everyone or self._of_device.get(slot.device.id) or Group(max_queue_size)
            self._of_device.setdefault(slot.device.id, own).admit(slot)
        self._groups = [everyone] if everyone else list(self._of_device.values())
        self._compilers = Group(max_queue_size)
        for slot in compile_slots:
            self._compilers.admit(slot)
        self._all = (*self._groups, self._compilers)
        self._identical: dict[Hashable, Job] = {}
        self._placers: list[asyncio.Task[None]] = []
        self._tasks: set[asyncio.Task[None]] = set()  # one for each running job
        self._executor = ThreadPoolExecutor(_MOST_THREADS, "slot")

    def start(self) -> None:
        for group in self._all:
            self._placers.append(asyncio.create_task(self._place(group)))

    async def close(self) -> None:
        """Cancel all jobs and close the slots."""
        for group in self._all:
            for job in group.jobs():
                job.cancelled.set()
                group.remove(job)
            for job in group.running:
                job.cancelled.set()
        for placer in self._placers:
            placer.cancel()
        await asyncio.gather(*self._placers, *self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._executor.shutdown)
        for group in self._all:
            for slot in group.slots:
                slot.close()

    def admit(self, slots: Sequence[Slot]) -> None:
        """Give the slots of a device jobs from now on; only for queues whose jobs name no device."""
        for slot in slots:
            self._groups[0].admit(slot)

    def dismiss(self, slots: Sequence[Slot]) -> None:
        """Give these slots no further jobs; those that run go on."""
        for slot in slots:
            self._groups[0].dismiss(slot)

    def submit(self, job: Job, *, accepted_before: bool = False) -> None:
        """Queue a job, or let it share the evaluation of an identical one at the higher priority of both.

        Raises QueueFull if no slot is free and no more jobs may wait, in all or of this client; never for a
        job that was ``accepted_before``.
        """
        group = self._group(job)
        if not accepted_before:
            self._require_space(group, job)
        identity = _identity(job)
        leader = None if identity is None or job.force else self._identical.get(identity)
        if leader is not None:
            job.leader = leader
            leader.sharers.append(job)
            group.joined[job.caller.client] += 1
            rank = leader.turn - HEAD_START * job.priority
            if rank < leader.rank and group.waits(leader):
                group.remove(leader)
                group.insert(leader, rank)
            return
        if identity is not None:
            self._identical[identity] = job
        job.sharers = [job]
        group.add(job)

    def withdraw(self, job: Job) -> bool:
        """Remove a job; cancel its evaluation if no other job shares it.

        Return True if the evaluation was cancelled and still runs.
        """
        leader, group = job.leader, self._group(job)
        if job not in leader.sharers or leader.ended.is_set():
            return False
        waits = group.waits(leader)
        if waits:
            group.remove(leader)
        first = leader.sharers[0] is job
        leader.sharers.remove(job)
        if leader.sharers:
            group.joined[(leader.sharers[0] if first else job).caller.client] -= 1
            if waits:
                group.insert(leader, leader.rank)
            return False
        leader.cancelled.set()
        self._forget_identity(leader)
        if waits:
            leader.started.set()
            leader.ended.set()
        return leader in group.running

    def position(self, job: Job) -> int:
        """Return how many jobs wait in front of a job; 0 if it runs or is about to."""
        group = self._group(job)
        if not group.waits(job.leader):
            return 0
        return max(group.position(job.leader) - group.starting().total(), 0)

    def oldest_s(self) -> float:
        """Return the age of the job that has waited longest for a device; 0 if none waits."""
        waiting = (job.created for group in self._groups for job in group.jobs())
        return max((time.monotonic() - created for created in waiting), default=0.0)

    def status(self) -> QueueStatus:
        """Return the load of the devices; jobs that any device may serve are spread evenly over them."""
        per_device: dict[str, DeviceQueue] = {}
        of_device = {group: Counter(slot.device.id for slot in group.slots) for group in self._groups}
        most = max((count for slots in of_device.values() for count in slots.values()), default=0)
        total = 0
        for group, slots in of_device.items():
            busy = Counter(slot.device.id for slot in group.running.values())
            starting = group.starting()
            waiting = group.waiting - starting.total() + group.joined.total()
            total += waiting
            hardware = {slot.device.id: slot.device.hardware for slot in group.slots}
            share, rest = divmod(waiting, max(len(slots), 1))
            for position, device in enumerate(slots):
                soon = min(slots[device] - busy[device], starting[hardware[device]])
                starting[hardware[device]] -= soon
                per_device[str(device)] = DeviceQueue(
                    queued=share + (position < rest),
                    processing=busy[device] + soon,
                    max_concurrent=most,
                )
        return QueueStatus(
            total_queued=total,
            total_processing=sum(load.processing for load in per_device.values()),
            per_device=per_device,
            max_concurrent=most,
            max_queue_size=self._max_queue_size,
        )

    def _group(self, job: Job) -> Group:
        if job.kind == "compile":
            return self._compilers
        return self._groups[0] if job.device is None else self._of_device.get(job.device, self._groups[0])

    def _require_space(self, group: Group, job: Job) -> None:
        joined, starting = group.joined, group.starting().total()
        if group.starting(job.gpus).total() > starting:
            return
        if group.waiting + joined.total() >= group.capacity + starting:
            raise QueueFull(f"Queue is full. Max queue size: {self._max_queue_size}")
        client, most = job.caller.client, job.caller.max_queued
        if most is not None and max(group.of_client(client) - starting, 0) + joined[client] >= most:
            raise QueueFull(f"Client {client} has {most} waiting jobs, as many as it may have")

    def _forget_identity(self, job: Job) -> None:
        identity = _identity(job)
        if self._identical.get(identity) is job:
            del self._identical[identity]

    async def _place(self, group: Group) -> None:
        while True:
            await group.wake.wait()
            group.wake.clear()
            while (pair := group.pair()) is not None:
                job, slot = pair
                job.started_at = job.started_at or time.monotonic()
                job.started.set()
                task = asyncio.create_task(self._run_on(slot, group, job))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)

    async def _run_on(self, slot: Slot, group: Group, job: Job) -> None:
        assert job.request is not None
        job.hardware = slot.device.hardware
        asked = EvaluationJob(job.kind, job.request, job.recorded_ms, job.id)
        loop = asyncio.get_running_loop()
        running = loop.run_in_executor(self._executor, self._run, slot, asked, job.cancelled)
        again = False
        try:
            job.outcome = await running
        except WorkerLost as lost:
            again = job.may_try_again(lost)
            job.outcome = None if again else lost.final
        except Exception as error:  # noqa: BLE001 - the error is the job's outcome
            job.outcome = error
        finally:
            group.free(job)
            if again:
                group.put_back(job)
            else:
                self._end(group, job)

    def _end(self, group: Group, job: Job) -> None:
        group.joined -= Counter(sharer.caller.client for sharer in job.sharers[1:])
        self._forget_identity(job)
        job.request = None
        job.ended.set()


def _identity(job: Job) -> Hashable | None:
    """Return a key that jobs with a common evaluation share; None if this job must not share."""
    if job.question is None or job.request is None:
        return None
    best_so_far = getattr(job.request, "best_so_far", None)  # a timing may stop early because of it
    return job.question.exact, job.request.timeout, job.device, job.gpus, best_so_far
