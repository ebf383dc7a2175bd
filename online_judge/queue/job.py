"""One evaluation that a client asks for, from its request to its answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
import uuid
from collections import Counter
from dataclasses import dataclass, field

from adaexplore.core.job_answer import JobAnswer
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, JobKind, JobRequest, JobState
from online_judge.common.tokens import Caller
from online_judge.queue.cache import Question
from online_judge.slots.device_slot import Request
from online_judge.slots.jobs import MOST_LOST, Finding, Loss, WorkerLost


@dataclass(eq=False)
class Job:
    """One evaluation that a client asks for, over v1 or v2.

    Identical jobs share one evaluation: the first one, the leader, is queued and runs; the others wait for
    it. A leader whose client cancels goes on for the others.
    """

    kind: JobKind
    request: Request | None  # None once it is no longer needed
    caller: Caller = field(default_factory=Caller)
    priority: int = 0  # each step moves the job ahead in the queue
    force: bool = False  # evaluate even if the result is known or an identical job is queued or running
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    durable: bool = False  # kept in the journal, and clients ask for it by ``id``; False for v1
    key: str | None = None  # idempotency key
    digest: str = ""  # hash of the body; empty if the body is unreadable
    accepted_at: float = field(default_factory=time.time)  # since the epoch
    starts: int = 0  # number of starts since the judge's last orderly shutdown
    created: float = field(default_factory=time.monotonic)
    device: int | None = None  # None for any
    recorded_ms: float | None = None  # a reference time to use instead of a measured one
    question: Question | None = None  # None if the result must be neither shared nor kept

    leader: Job = field(init=False)  # the job that runs
    # of a leader:
    sharers: list[Job] = field(default_factory=list)  # jobs that wait for its evaluation
    turn: int = 0  # see :class:`online_judge.queue.scheduler.Scheduler`
    rank: int = 0  # place in the queue; the lowest starts first
    started_at: float | None = None  # by the monotonic clock
    hardware: str = ""  # hardware of the device on which it ran last
    cancelled: threading.Event = field(default_factory=threading.Event)  # nobody waits for it any more
    lost: Counter[Loss] = field(default_factory=Counter)  # how workers were lost during it
    avoid: set[int] = field(default_factory=set)  # their devices; others go first
    outcome: Finding | Exception | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)  # or withdrawn
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    accepted: asyncio.Event = field(default_factory=asyncio.Event)  # in the journal, or refused
    refusal: Exception | None = None
    answer: JobAnswer | None = None  # for clients of v2
    settled: bool = False  # its end is decided, perhaps not yet in the journal
    over: asyncio.Event = field(default_factory=asyncio.Event)  # end in the journal, or shutdown

    def __post_init__(self) -> None:
        self.leader = self

    @classmethod
    def of_v2(cls, body: JobRequest, caller: Caller, key: str | None = None) -> Job:
        """Return a new job that the journal is to keep."""
        digest = hashlib.sha256(json.dumps(body.model_dump(), sort_keys=True).encode()).hexdigest()
        asked = (body.kind, body.request, caller, body.priority, body.force)
        return cls(*asked, durable=True, key=key, digest=digest)

    @property
    def body(self) -> JobRequest | None:
        """Return the request of a client of v2; None once it is no longer needed."""
        if not isinstance(self.request, EvaluationRequest):
            return None
        return JobRequest(kind=self.kind, request=self.request, priority=self.priority, force=self.force)

    @property
    def gpus(self) -> tuple[str, ...]:
        """Return the GPU models on one of which the job must run; empty for any."""
        if self.kind == "compile" or not isinstance(self.request, EvaluationRequest):
            return ()
        return self.request.gpus

    def may_try_again(self, lost: WorkerLost) -> bool:
        """Note that a worker was lost during the job; return True if another one may try."""
        self.lost[lost.why] += 1
        self.avoid.add(lost.device)
        return self.lost[lost.why] < MOST_LOST[lost.why] and not self.cancelled.is_set()

    @property
    def state(self) -> JobState:
        if self.answer is not None:
            return self.answer.state
        return "queued" if self.leader.started_at is None else "running"

    @property
    def queue_time_s(self) -> float:
        """Return the time before the start; 0 if it has not started."""
        started_at = self.leader.started_at
        return 0.0 if started_at is None else max(started_at - self.created, 0.0)

    def answer_of(
        self, state: JobState, *, found: Finding | None = None, error: str | None = None, cached: bool = False
    ) -> JobAnswer:
        """Return the answer for a client if the job ends in this state now."""
        elapsed_s = time.monotonic() - self.created
        waited_s = elapsed_s if self.leader.started_at is None else self.queue_time_s
        return JobAnswer(
            id=self.id,
            kind=self.kind,
            state=state,
            verdict=found if isinstance(found, Verdict) else None,
            report=None if isinstance(found, Verdict) else found,
            error=error,
            cached=cached,
            queue_time=0.0 if cached else waited_s,
            execution_time=elapsed_s,
        )
