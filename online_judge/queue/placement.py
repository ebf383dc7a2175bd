"""Choose which waiting job runs on which free slot; no clock, no threads."""

from __future__ import annotations

import asyncio
import bisect
from collections import Counter, defaultdict, deque
from dataclasses import dataclass, field
from operator import attrgetter

from adaexplore.core.wire import fits
from online_judge.queue.job import Job
from online_judge.slots.jobs import Slot

HEAD_START = 50
"""Turns per step of priority; a job that has waited for more turns is not overtaken."""
_IN_FRONT = 10**9  # of the ranks of all jobs that have not started yet
_RANK = attrgetter("rank")
_TURN = attrgetter("turn")
_Owner = tuple[str, int]
"""A client and a priority."""


@dataclass(eq=False)
class Group:
    """Slots that serve one queue, and its jobs.

    Clients take turns. A job's turn is one more than the highest turn among its client's waiting jobs of the
    same priority; if the client has none, one more than the turn that is being served to jobs for the same
    GPU models. So the first job of a new client goes before the backlog of another client. A job's rank is
    its turn, less :data:`HEAD_START` for each step of priority; the lowest rank starts first. A job that lost
    its worker goes in front of all.
    """

    capacity_per_device: int  # most jobs that may wait
    slots: dict[Slot, None] = field(default_factory=dict)
    running: dict[Job, Slot] = field(default_factory=dict)
    wake: asyncio.Event = field(default_factory=asyncio.Event)  # a job or a slot has become available
    joined: Counter[str] = field(default_factory=Counter)  # by client: sharers of another evaluation
    turn: int = 0  # the highest turn that has been served
    _served: dict[tuple[str, ...], int] = field(default_factory=dict)  # by GPU models, where jobs wait
    _idle: defaultdict[str, deque[Slot]] = field(default_factory=lambda: defaultdict(deque))  # by hardware
    _lines: dict[tuple[str, ...], list[Job]] = field(default_factory=dict)  # by GPU models, each by rank
    _owner_of: dict[Job, _Owner] = field(default_factory=dict)  # of the waiting jobs
    _own: defaultdict[_Owner, list[Job]] = field(default_factory=lambda: defaultdict(list))  # each by turn
    _devices: Counter[int] = field(default_factory=Counter)

    @property
    def capacity(self) -> int:
        return self.capacity_per_device * max(len(self._devices), 1)

    def starting(self, *more: tuple[str, ...]) -> Counter[str]:
        """Count by hardware the waiting jobs that are about to start, because a slot that fits has no job.

        ``more`` are GPU models of further jobs that would wait.
        """
        if not any(self._idle.values()):
            return Counter()
        waiting = Counter({gpus: len(line) for gpus, line in self._lines.items()}) + Counter(more)
        idle = Counter({hardware: len(slots) for hardware, slots in self._idle.items()})
        found: Counter[str] = Counter()
        for gpus in sorted(waiting, key=lambda gpus: sum(fits(gpus, hardware) for hardware in idle)):
            for hardware in idle:
                if fits(gpus, hardware):
                    start = min(waiting[gpus], idle[hardware] - found[hardware])
                    waiting[gpus] -= start
                    found[hardware] += start
        return found

    @property
    def waiting(self) -> int:
        return len(self._owner_of)

    def waits(self, job: Job) -> bool:
        return job in self._owner_of

    def jobs(self) -> list[Job]:
        """Return the waiting jobs, in no order."""
        return list(self._owner_of)

    def of_client(self, client: str) -> int:
        """Count a client's waiting jobs."""
        return sum(len(own) for (name, _), own in self._own.items() if name == client)

    def position(self, job: Job) -> int:
        """Return how many jobs wait in front of a waiting one."""
        before = sum(bisect.bisect_left(line, job.rank, key=_RANK) for line in self._lines.values())
        line = self._lines[job.gpus]
        equal = bisect.bisect_left(line, job.rank, key=_RANK)
        return before + line.index(job, equal) - equal

    def admit(self, slot: Slot) -> None:
        self.slots[slot] = None
        self._devices[slot.device.id] += 1
        if slot not in self.running.values():
            self._idle[slot.device.hardware].append(slot)
        self.wake.set()

    def dismiss(self, slot: Slot) -> None:
        """Give a slot no further job; the one that it runs goes on."""
        if slot in self.slots:
            del self.slots[slot]
            self._devices -= Counter([slot.device.id])
            if slot in self._idle[slot.device.hardware]:
                self._idle[slot.device.hardware].remove(slot)
            self.wake.set()  # a job may have avoided another slot in favour of this one

    def add(self, job: Job) -> None:
        own = self._own[_owner(job)]
        served = self._served.get(job.gpus, self.turn)
        job.turn = (own[-1].turn if own else served) + 1
        self.insert(job, job.turn - HEAD_START * job.priority)

    def insert(self, job: Job, rank: int) -> None:
        owner = _owner(job)
        self._owner_of[job], job.rank = owner, rank
        bisect.insort(self._own[owner], job, key=_TURN)
        bisect.insort(self._lines.setdefault(job.gpus, []), job, key=_RANK)
        self.wake.set()

    def put_back(self, job: Job) -> None:
        """Have a job that ran wait again, ahead of all that have not started."""
        self.insert(job, job.turn - _IN_FRONT)

    def remove(self, job: Job) -> None:
        line, own = self._lines[job.gpus], self._own[owner := self._owner_of.pop(job)]
        line.pop(line.index(job, bisect.bisect_left(line, job.rank, key=_RANK)))
        if not line:
            del self._lines[job.gpus]
            self._served.pop(job.gpus, None)
        own.pop(own.index(job, bisect.bisect_left(own, job.turn, key=_TURN)))
        if not own:
            del self._own[owner]

    def pair(self) -> tuple[Job, Slot] | None:
        """Return the next job for which a fitting slot is free, and that slot."""
        for line in sorted(self._lines.values(), key=lambda line: int(line[0].rank)):
            fitting = [idle for hardware, idle in self._idle.items() if idle and fits(line[0].gpus, hardware)]
            for job in line if fitting else ():
                for slot in max(fitting, key=len) if not job.avoid else (s for idle in fitting for s in idle):
                    if not self._avoids(job, slot):
                        self._count_turn(job)
                        self.remove(job)
                        self._idle[slot.device.hardware].remove(slot)
                        self.running[job] = slot
                        return job, slot
        return None

    def _count_turn(self, job: Job) -> None:
        """Note the turn of a job that starts, or of its client's first one there if it was moved forward."""
        alike = (each.turn for each in self._own[self._owner_of[job]] if each.gpus == job.gpus)
        self._served[job.gpus] = max(self._served.get(job.gpus, 0), next(alike))
        self.turn = max(self.turn, self._served[job.gpus])

    def free(self, job: Job) -> None:
        slot = self.running.pop(job)
        if slot in self.slots:
            self._idle[slot.device.hardware].append(slot)
        self.wake.set()

    def _avoids(self, job: Job, slot: Slot) -> bool:
        """Return True if this device lost the job before and another device could take it."""
        return slot.device.id in job.avoid and any(
            other.device.id not in job.avoid and fits(job.gpus, other.device.hardware) for other in self.slots
        )


def _owner(leader: Job) -> _Owner:
    """Return the client of an evaluation, the first one still waiting, and its priority."""
    return leader.sharers[0].caller.client, leader.priority
