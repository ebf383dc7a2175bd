"""The bounded queue: admission is counted at once, and device slots pull from it."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Protocol

from adaexplore.core.wire import DeviceQueue, QueueStatus

log = logging.getLogger(__name__)


class QueueFull(Exception):
    """As many jobs wait as may wait."""


class Slot(Protocol):
    """What runs jobs of one device, one at a time."""

    @property
    def device(self) -> Any:
        """The device, of which the ``id`` counts here."""

    def close(self) -> None:
        """Let go of everything."""


Work = Callable[[Any, threading.Event], Any]
HEAD_START = 50
"""Turns by which one step of priority goes ahead; what has waited longer is not overtaken."""


@dataclass(eq=False)
class Job:
    """One piece of work on its way; awaited through :attr:`started` and :attr:`done`.

    Attributes:
        work: what a slot runs.
        lane: where it waits.
        priority: of a step more, it goes :data:`HEAD_START` turns ahead.
        client: who asked for it; clients take turns.
        turn: its turn, were all priorities equal.
        started: done when a slot has it.
        done: its result.
        enqueued: when it was taken in, by the monotonic clock.
        queue_time_s: how long it waited; known once it started.
        cancelled: set when nobody waits for it any more.
    """

    work: Work
    lane: Lane
    priority: int
    client: str
    turn: int
    started: asyncio.Future[None]
    done: asyncio.Future[Any]
    enqueued: float = field(default_factory=time.monotonic)
    queue_time_s: float = 0.0
    cancelled: threading.Event = field(default_factory=threading.Event)

    def cancel(self) -> None:
        """Nobody waits any more: leave the queue, or stop running."""
        self.cancelled.set()
        if self in self.lane.waiting:
            self.lane.waiting.remove(self)


@dataclass(eq=False)
class Lane:
    """Jobs for a set of devices, and the slots that pull them.

    Clients take turns: a job has the turn after its client's last waiting one of the same priority, or
    after the turn that is being served, whichever is later. So a newcomer goes before the backlog of
    somebody else, and whoever waits ages with every turn that is served.
    """

    device_ids: tuple[int, ...]
    capacity: int
    slots: int
    waiting: deque[Job] = field(default_factory=deque)
    turn: int = 0
    joined: Counter[str] = field(default_factory=Counter)
    busy: dict[int, int] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def idle(self) -> int:
        """Slots that have no job yet; as many of the waiting jobs are about to start."""
        return self.slots - sum(self.busy.values())

    @property
    def full(self) -> bool:
        """Whether as many wait as may, those included that wait for another's job."""
        return len(self.waiting) + self.joined.total() >= self.capacity + self.idle

    def queued(self, client: str) -> int:
        """Return how many jobs of ``client`` wait, those included that wait for another's job."""
        waiting = sum(job.client == client for job in self.waiting)
        return max(waiting - self.idle, 0) + self.joined[client]

    def next_turn(self, client: str, priority: int) -> int:
        """The turn of one more job of ``client``."""
        own = (job.turn for job in self.waiting if (job.client, job.priority) == (client, priority))
        return max(own, default=self.turn) + 1

    def insert(self, job: Job) -> None:
        """Let a job wait behind all whose time comes before its own or with it."""
        place = len(self.waiting)
        while place and _rank(self.waiting[place - 1]) > _rank(job):
            place -= 1
        self.waiting.insert(place, job)

    def pull(self) -> Job:
        """The job whose time has come."""
        job = self.waiting.popleft()
        self.turn = max(self.turn, job.turn)
        return job


def _rank(job: Job) -> int:
    return job.turn - HEAD_START * job.priority


class Scheduler:
    """All lanes; used from one event loop."""

    def __init__(self, slots: Sequence[Slot], max_queue_size: int, *, pinned: bool) -> None:
        """Serve ``slots``.

        Args:
            slots: one or more for each device.
            max_queue_size: jobs that may wait per device.
            pinned: whether each job names its device; else all devices share one queue.
        """
        self._slots = slots
        self._max_queue_size = max_queue_size
        per_device: dict[int, int] = {}
        for slot in slots:
            per_device[slot.device.id] = per_device.get(slot.device.id, 0) + 1
        self._max_concurrent = max(per_device.values(), default=0)
        groups = [(device,) for device in per_device] if pinned else [tuple(per_device)]
        self._lanes = [
            Lane(
                group,
                max_queue_size * len(group),
                sum(per_device[device] for device in group),
                busy=dict.fromkeys(group, 0),
            )
            for group in groups
        ]
        self._tasks: list[asyncio.Task[None]] = []
        self._executor = ThreadPoolExecutor(max(len(slots), 1), thread_name_prefix="bench")

    def start(self) -> None:
        """Start one consumer per slot."""
        for slot in self._slots:
            lane = next(lane for lane in self._lanes if slot.device.id in lane.device_ids)
            self._tasks.append(asyncio.create_task(self._consume(slot, lane)))

    async def close(self) -> None:
        """Stop everything; running jobs are cancelled."""
        for lane in self._lanes:
            for job in list(lane.waiting):
                job.cancel()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await asyncio.to_thread(self._executor.shutdown)
        for slot in self._slots:
            slot.close()

    def submit(
        self,
        work: Work,
        device: int | None = None,
        *,
        priority: int = 0,
        client: str = "",
        max_queued: int | None = None,
        admitted: bool = False,
    ) -> Job:
        """Take a job in, at once or not at all.

        Args:
            work: what a slot runs.
            device: on which, where each device has a queue of its own.
            priority: a waiting job of a higher one goes first, unless the other has waited for long.
            client: whose it is; those without a name are one client.
            max_queued: jobs of this client that may wait; None for as many as the queue takes.
            admitted: it was taken in before, so it is even if the queue is full.

        Raises:
            QueueFull: no slot is free and as many wait as may.
        """
        lane = next(
            lane
            for lane in self._lanes
            if device is None or device in lane.device_ids or len(self._lanes) == 1
        )
        if not admitted:
            self._refuse_when_full(lane, client, max_queued)
        loop = asyncio.get_running_loop()
        turn = lane.next_turn(client, priority)
        job = Job(work, lane, priority, client, turn, loop.create_future(), loop.create_future())
        lane.insert(job)
        lane.wake.set()
        return job

    def join(
        self,
        job: Job,
        *,
        priority: int = 0,
        client: str = "",
        max_queued: int | None = None,
        admitted: bool = False,
    ) -> None:
        """Count one more who waits for ``job``, until :meth:`leave`; the higher priority holds.

        The arguments are those of :meth:`submit`.

        Raises:
            QueueFull: as many wait as may.
        """
        if not admitted:
            self._refuse_when_full(job.lane, client, max_queued)
        job.lane.joined[client] += 1
        if priority > job.priority:
            job.priority = priority
            if job in job.lane.waiting:
                job.lane.waiting.remove(job)
                job.lane.insert(job)

    def leave(self, job: Job, client: str = "") -> None:
        """Count one less of ``client`` that waits for ``job``."""
        job.lane.joined[client] -= 1
        if not job.lane.joined[client]:
            del job.lane.joined[client]

    def position(self, job: Job) -> int:
        """How many wait in front of a job; 0 when it runs or is about to."""
        if job not in job.lane.waiting:
            return 0
        return max(job.lane.waiting.index(job) - job.lane.idle, 0)

    def oldest(self) -> float | None:
        """When the longest waiting job was taken in, by the monotonic clock."""
        return min((job.enqueued for lane in self._lanes for job in lane.waiting), default=None)

    def _refuse_when_full(self, lane: Lane, client: str, max_queued: int | None) -> None:
        if lane.full:
            raise QueueFull(f"Queue is full. Max queue size: {self._max_queue_size}")
        if max_queued is not None and lane.queued(client) >= max_queued:
            raise QueueFull(f"Client {client} has {max_queued} waiting jobs, as many as it may have")

    def status(self) -> QueueStatus:
        """Load now; jobs that any device may take are spread evenly over the devices."""
        per_device: dict[str, DeviceQueue] = {}
        for lane in self._lanes:
            waiting = max(len(lane.waiting) - lane.idle, 0) + lane.joined.total()
            starting = min(len(lane.waiting), lane.idle)
            share, rest = divmod(waiting, len(lane.device_ids) or 1)
            for position, device in enumerate(lane.device_ids):
                free = lane.slots // len(lane.device_ids) - lane.busy[device]
                soon = min(free, starting)
                starting -= soon
                per_device[str(device)] = DeviceQueue(
                    queued=share + (position < rest),
                    processing=lane.busy[device] + soon,
                    max_concurrent=self._max_concurrent,
                )
        return QueueStatus(
            total_queued=sum(load.queued for load in per_device.values()),
            total_processing=sum(load.processing for load in per_device.values()),
            per_device=per_device,
            max_concurrent=self._max_concurrent,
            max_queue_size=self._max_queue_size,
        )

    async def _consume(self, slot: Slot, lane: Lane) -> None:
        loop = asyncio.get_running_loop()
        while True:
            while not lane.waiting:
                lane.wake.clear()
                await lane.wake.wait()
            job = lane.pull()
            lane.busy[slot.device.id] += 1
            job.queue_time_s = time.monotonic() - job.enqueued
            if not job.started.done():
                job.started.set_result(None)
            running = loop.run_in_executor(self._executor, job.work, slot, job.cancelled)
            try:
                result = await asyncio.shield(running)
            except asyncio.CancelledError:
                job.cancelled.set()
                await asyncio.wait({running})
                running.exception()
                job.done.cancel()
                raise
            except Exception as error:  # noqa: BLE001 - handed on to whoever awaits the job
                if not job.done.done():
                    job.done.set_exception(error)
                    job.done.exception()  # nobody may be waiting any more
            else:
                if not job.done.done():
                    job.done.set_result(result)
            finally:
                lane.busy[slot.device.id] -= 1
