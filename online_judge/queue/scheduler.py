"""The bounded queue of all jobs: a job is queued or refused at once, and slots take the next one."""

from __future__ import annotations

import asyncio
import bisect
import threading
import time
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from adaexplore.core.wire import DeviceQueue, JobKind, QueueStatus
from online_judge.queue.evaluations import Slot
from online_judge.queue.job import Finding, Job, Request

Run = Callable[[Slot, JobKind, Request, threading.Event], Finding]
HEAD_START = 50
"""Turns by which one step of priority goes ahead; a job that has waited for longer is not overtaken."""


class QueueFull(Exception):
    """As many jobs wait as may wait."""


@dataclass(eq=False)
class SlotGroup:
    """Slots that take the same jobs.

    Attributes:
        device_ids: of the slots; empty for those that need no device.
        slots: how many.
        capacity: jobs that may wait for them.
        turn: the latest turn that was served.
    """

    device_ids: tuple[int, ...]
    slots: int
    capacity: int
    turn: int = 0


class Scheduler:
    """All jobs that wait or run; used from one event loop.

    Clients take turns: a job has the turn after its client's last waiting one of the same priority, or after
    the turn that is being served, whichever is later. So a new client goes before the backlog of another, and
    a job that waits moves ahead with every turn that is served.
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
            max_queue_size: jobs that may wait per device, and for the compile slots.
            run: evaluates a request on a slot; blocks.
            pinned: whether each job names its device; else any device takes any job.
            compile_slots: slots for jobs of kind ``compile``.
        """
        self._max_queue_size = max_queue_size
        self._run = run
        per_device = Counter(slot.device.id for slot in slots)
        self._max_concurrent = max(per_device.values(), default=0)
        device_ids = [(device,) for device in per_device] if pinned else [tuple(per_device)]
        self._groups = [
            SlotGroup(ids, sum(per_device[device] for device in ids), max_queue_size * len(ids))
            for ids in device_ids
        ]
        self._compile_group = SlotGroup((), len(compile_slots), max_queue_size)
        self._group_of_device = {device: group for group in self._groups for device in group.device_ids}
        self._slots = [(slot, self._group_of_device[slot.device.id]) for slot in slots]
        self._slots += [(slot, self._compile_group) for slot in compile_slots]
        self._waiting: list[Job] = []  # by rank
        self._running: dict[Job, int] = {}  # with the device
        self._identical: dict[Hashable, Job] = {}
        self._wake = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._executor = ThreadPoolExecutor(max(len(self._slots), 1), thread_name_prefix="slot")

    def start(self) -> None:
        """Let the slots take jobs."""
        self._tasks = [asyncio.create_task(self._serve(slot, group)) for slot, group in self._slots]

    async def close(self) -> None:
        """Stop everything; running jobs are cancelled."""
        for job in self._waiting:
            job.cancelled.set()
        self._waiting.clear()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._executor.shutdown)
        for slot, _ in self._slots:
            slot.close()

    def submit(self, job: Job, *, accepted_before: bool = False) -> None:
        """Queue a job, or let it share the evaluation of an identical one; the higher priority holds.

        Args:
            job: what to evaluate.
            accepted_before: take it even if the queue is full.

        Raises:
            QueueFull: no slot is free and as many wait as may, in all or of this client.
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
            if rank < leader.rank and leader in self._waiting:
                self._waiting.remove(leader)
                leader.rank = rank
                bisect.insort(self._waiting, leader, key=_rank)
            return
        if identity is not None:
            self._identical[identity] = job
        job.sharers = [job]
        job.turn = self._next_turn(group, job)
        job.rank = job.turn - HEAD_START * job.priority
        bisect.insort(self._waiting, job, key=_rank)
        self._wake.set()

    def withdraw(self, job: Job) -> bool:
        """Take a job back; the last job of an evaluation cancels it.

        Returns:
            Whether the evaluation was cancelled and still runs, until the leader's ``ended``.
        """
        leader = job.leader
        if job not in leader.sharers or leader.ended.is_set():
            return False
        leader.sharers.remove(job)
        if leader.sharers:
            return False
        leader.cancelled.set()
        self._forget_identity(leader)
        if leader in self._waiting:
            self._waiting.remove(leader)
            leader.started.set()
        return leader in self._running

    def position(self, job: Job) -> int:
        """Return how many jobs wait in front of a job; 0 when it runs or is about to."""
        group = self._group(job)
        waiting = self._waiting_for(group)
        if job.leader not in waiting:
            return 0
        return max(waiting.index(job.leader) - self._idle(group), 0)

    def oldest_s(self) -> float:
        """Return the age of the job that has waited longest for a device; 0 if none waits."""
        waiting = (job.created for job in self._waiting if self._group(job) is not self._compile_group)
        return max((time.monotonic() - created for created in waiting), default=0.0)

    def status(self) -> QueueStatus:
        """Return the load of the devices; jobs that any device may take are spread evenly over them."""
        per_device: dict[str, DeviceQueue] = {}
        for group in self._groups:
            busy = Counter(self._running[job] for job in self._running_on(group))
            present, idle = len(self._waiting_for(group)), self._idle(group)
            waiting = max(present - idle, 0) + self._joined(group).total()
            starting = min(present, idle)
            share, rest = divmod(waiting, len(group.device_ids) or 1)
            for position, device in enumerate(group.device_ids):
                free = group.slots // len(group.device_ids) - busy[device]
                soon = min(free, starting)
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

    def _group(self, job: Job) -> SlotGroup:
        if job.kind == "compile":
            return self._compile_group
        return self._group_of_device[job.device] if job.device in self._group_of_device else self._groups[0]

    def _waiting_for(self, group: SlotGroup) -> list[Job]:
        return [job for job in self._waiting if self._group(job) is group]

    def _running_on(self, group: SlotGroup) -> list[Job]:
        return [job for job in self._running if self._group(job) is group]

    def _idle(self, group: SlotGroup) -> int:
        """Return how many slots have no job; as many of the waiting jobs are about to start."""
        return group.slots - len(self._running_on(group))

    def _joined(self, group: SlotGroup) -> Counter[str]:
        """Count by client the jobs that share the evaluation of an earlier one: they wait, too."""
        leaders = self._waiting_for(group) + self._running_on(group)
        return Counter(job.caller.turn for leader in leaders for job in leader.sharers[1:])

    def _require_space(self, group: SlotGroup, job: Job) -> None:
        waiting, joined, idle = self._waiting_for(group), self._joined(group), self._idle(group)
        if len(waiting) + joined.total() >= group.capacity + idle:
            raise QueueFull(f"Queue is full. Max queue size: {self._max_queue_size}")
        client, most = job.caller.turn, job.caller.max_queued
        own = sum(_client(each) == client for each in waiting)
        if most is not None and max(own - idle, 0) + joined[client] >= most:
            raise QueueFull(f"Client {client} has {most} waiting jobs, as many as it may have")

    def _next_turn(self, group: SlotGroup, job: Job) -> int:
        whose = (job.caller.turn, job.priority)
        own = (each.turn for each in self._waiting_for(group) if (_client(each), each.priority) == whose)
        return max(own, default=group.turn) + 1

    def _forget_identity(self, job: Job) -> None:
        self._identical = {key: leader for key, leader in self._identical.items() if leader is not job}

    async def _next(self, group: SlotGroup) -> Job:
        while not (waiting := self._waiting_for(group)):
            self._wake.clear()
            await self._wake.wait()
        job = waiting[0]
        self._waiting.remove(job)
        group.turn = max(group.turn, job.turn)
        return job

    async def _serve(self, slot: Slot, group: SlotGroup) -> None:
        loop = asyncio.get_running_loop()
        while True:
            job = await self._next(group)
            assert job.request is not None
            self._running[job] = slot.device.id
            job.started_at = time.monotonic()
            job.started.set()
            running = loop.run_in_executor(
                self._executor, self._run, slot, job.kind, job.request, job.cancelled
            )
            try:
                job.outcome = await asyncio.shield(running)
            except asyncio.CancelledError:
                job.cancelled.set()
                await asyncio.wait({running})
                running.exception()
                raise
            except Exception as error:  # noqa: BLE001 - whoever awaits the job gets it
                job.outcome = error
            finally:
                del self._running[job]
                self._forget_identity(job)
                job.request = None
                job.ended.set()


def _rank(job: Job) -> int:
    return job.rank


def _client(leader: Job) -> str:
    """Return the client whose turn an evaluation takes: the first that still waits for it."""
    return leader.sharers[0].caller.turn


def _identity(job: Job) -> Hashable | None:
    """Return what jobs that may share an evaluation have in common; None for one that shares none."""
    if job.question is None or job.request is None:
        return None
    return job.question.exact, job.request.timeout, job.device
