"""One job as the judge remembers it, and the evaluation that it waits for."""

from __future__ import annotations

import asyncio
import time
from dataclasses import dataclass, field, replace

from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import JobAnswer, JobState, JobVerdict
from online_judge.common.tokens import Caller
from online_judge.queue.cache import Question
from online_judge.queue.evaluations import Finding
from online_judge.queue.journal import JobRow
from online_judge.queue.scheduler import Job, Scheduler


@dataclass(frozen=True)
class Answered:
    """The answer to a job that needs no evaluation: exactly one of its fields is set.

    Attributes:
        finding: what was found.
        error: why the problem cannot be judged, in one line.
    """

    finding: Finding | None = None
    error: str | None = None


@dataclass(eq=False)
class Run:
    """One evaluation on its way.

    Attributes:
        job: the scheduler's.
        key: what identical jobs share.
        question: under which its verdict is kept; None if it is not.
        entries: the jobs that wait for it.
        task: follows it.
    """

    job: Job
    key: tuple[object, ...]
    question: Question | None
    entries: list[Entry]
    task: asyncio.Task[None] | None = None


@dataclass(eq=False)
class Entry:
    """One job of a client.

    Attributes:
        row: as in the journal.
        accepted: done when it is in the journal; an error if it was not taken in.
        begun: when it was taken in, by the monotonic clock.
        run: what it waits for.
        answer: how it ended; None until then.
        settling: its end is decided, and perhaps not yet written down.
        caller: whose it is.
        done: set when it is over.
    """

    row: JobRow
    accepted: asyncio.Future[None]
    begun: float = field(default_factory=time.monotonic)
    run: Run | None = None
    answer: JobAnswer | None = None
    settling: bool = False
    caller: Caller = field(default_factory=Caller)
    done: asyncio.Event = field(default_factory=asyncio.Event)

    def look(self, scheduler: Scheduler) -> JobAnswer:
        """How it stands."""
        if self.answer is not None:
            return self.answer
        started = self.run is not None and self.run.job.started.done()
        return JobAnswer(
            id=self.row.id,
            kind=self.row.kind,
            state="running" if started else "queued",
            position=0 if self.run is None else scheduler.position(self.run.job),
            execution_time=time.monotonic() - self.begun,
        )

    def answer_of(
        self,
        state: JobState,
        *,
        found: Finding | None = None,
        error: str | None = None,
        cached: bool = False,
    ) -> JobAnswer:
        """What a client is told if it ends so now."""
        verdict = report = None
        if isinstance(found, Verdict):
            verdict = JobVerdict(status=found.status.value, **found.to_metrics())
        else:
            report = found
        waited_s = elapsed_s = time.monotonic() - self.begun
        if cached:
            waited_s = 0.0
        elif self.run is not None and self.run.job.started.done():
            waited_s = max(self.run.job.enqueued + self.run.job.queue_time_s - self.begun, 0.0)
        return JobAnswer(
            id=self.row.id,
            kind=self.row.kind,
            state=state,
            verdict=verdict,
            report=report,
            error=error,
            cached=cached,
            queue_time=waited_s,
            execution_time=elapsed_s,
        )

    def conclude(self, answer: JobAnswer) -> None:
        """It is over; what was asked is not needed any more."""
        self.settling = True
        self.answer = answer
        self.row = replace(self.row, body=None, answer=None)
        self.done.set()
