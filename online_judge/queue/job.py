"""One evaluation that a client asks for, from its request to its answer."""

from __future__ import annotations

import asyncio
import hashlib
import json
import threading
import time
import uuid
from dataclasses import dataclass, field

from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import (
    CompileReport,
    EvaluationRequest,
    JobAnswer,
    JobKind,
    JobRequest,
    JobState,
    JobVerdict,
    ProblemReport,
    ProblemRequest,
    ProfileReport,
)
from online_judge.common.tokens import Caller
from online_judge.queue.cache import Question

Request = EvaluationRequest | ProblemRequest
Finding = Verdict | ProblemReport | CompileReport | ProfileReport


@dataclass(eq=False)
class Job:
    """One evaluation that a client asks for, over v1 or v2.

    Identical jobs share one evaluation: the first one, the leader, is queued and runs; the others wait for
    it. A leader whose client cancels goes on for the others.

    Attributes:
        kind: what is asked about the request.
        request: None when it is no longer needed.
        caller: who asks.
        priority: each step moves the job ahead in the queue.
        force: evaluate even if the result is known or an identical job is queued or running.
        id: name towards clients.
        durable: the journal has it and clients ask for it by ``id``; False for v1.
        key: idempotency key, if the client sent one.
        digest: hash of the body; empty if it cannot be read any more.
        accepted_at: seconds since the epoch.
        starts: how often it started since the judge last exited in order.
        created: time by the monotonic clock.
        device: the device that it must run on; None for any.
        question: what identifies its result; None if the result is neither shared nor kept.
        leader: the job that runs; itself unless it shares an evaluation.
        sharers: of a leader, the jobs that wait for its evaluation.
        turn: of a leader, its turn if all priorities were equal.
        rank: of a leader, its place in the queue; the smallest goes first.
        started_at: of a leader, when a slot took it, by the monotonic clock.
        cancelled: of a leader, set when nobody waits for it any more.
        outcome: of a leader, the finding or the error.
        started: of a leader, set when it starts or is withdrawn.
        ended: of a leader, set when its run is over.
        accepted: set when it is in the journal or refused.
        refusal: why it was not accepted.
        answer: how it ended, for clients of v2.
        settled: its end is decided, and perhaps not yet in the journal.
        over: set when its end is in the journal, or when the judge shuts down.
    """

    kind: JobKind
    request: Request | None
    caller: Caller = field(default_factory=Caller)
    priority: int = 0
    force: bool = False
    id: str = field(default_factory=lambda: uuid.uuid4().hex)
    durable: bool = False
    key: str | None = None
    digest: str = ""
    accepted_at: float = field(default_factory=time.time)
    starts: int = 0
    created: float = field(default_factory=time.monotonic)
    device: int | None = None
    question: Question | None = None

    leader: Job = field(init=False)
    sharers: list[Job] = field(default_factory=list)
    turn: int = 0
    rank: int = 0
    started_at: float | None = None
    cancelled: threading.Event = field(default_factory=threading.Event)
    outcome: Finding | Exception | None = None
    started: asyncio.Event = field(default_factory=asyncio.Event)
    ended: asyncio.Event = field(default_factory=asyncio.Event)

    accepted: asyncio.Event = field(default_factory=asyncio.Event)
    refusal: Exception | None = None
    answer: JobAnswer | None = None
    settled: bool = False
    over: asyncio.Event = field(default_factory=asyncio.Event)

    def __post_init__(self) -> None:
        """Lead its own evaluation."""
        self.leader = self

    @classmethod
    def of_v2(cls, body: JobRequest, caller: Caller, key: str | None = None) -> Job:
        """Return a new job that the journal is to keep."""
        digest = hashlib.sha256(json.dumps(body.model_dump(), sort_keys=True).encode()).hexdigest()
        return cls(
            body.kind,
            body.request,
            caller,
            body.priority,
            body.force,
            durable=True,
            key=key,
            digest=digest,
        )

    @property
    def body(self) -> JobRequest | None:
        """What a client of v2 asked; None once that is no longer needed."""
        if not isinstance(self.request, EvaluationRequest):
            return None
        return JobRequest(kind=self.kind, request=self.request, priority=self.priority, force=self.force)

    @property
    def state(self) -> JobState:
        """State for clients of v2."""
        if self.answer is not None:
            return self.answer.state
        return "queued" if self.leader.started_at is None else "running"

    @property
    def queue_time_s(self) -> float:
        """Time before the start; 0 if it has not started."""
        started_at = self.leader.started_at
        return 0.0 if started_at is None else max(started_at - self.created, 0.0)

    def answer_of(
        self,
        state: JobState,
        *,
        found: Finding | None = None,
        error: str | None = None,
        cached: bool = False,
    ) -> JobAnswer:
        """Return the answer for a client if the job ends in this state now."""
        verdict = report = None
        if isinstance(found, Verdict):
            verdict = JobVerdict(status=found.status.value, **found.to_metrics())
        else:
            report = found
        elapsed_s = time.monotonic() - self.created
        waited_s = elapsed_s if self.leader.started_at is None else self.queue_time_s
        return JobAnswer(
            id=self.id,
            kind=self.kind,
            state=state,
            verdict=verdict,
            report=report,
            error=error,
            cached=cached,
            queue_time=0.0 if cached else waited_s,
            execution_time=elapsed_s,
        )
