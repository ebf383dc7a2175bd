"""All jobs of the judge: accepted once, evaluated once, answered, and for v2 kept in the journal."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import sqlite3
import time
from collections import defaultdict, deque
from collections.abc import Coroutine, Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.job_answer import JobAnswer
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, JobState, ProfileReport
from online_judge.common.events import log_event
from online_judge.queue.cache import Question, ResultCache
from online_judge.queue.evaluations import Evaluations, NoSuchDevice
from online_judge.queue.job import Job
from online_judge.queue.journal import KEPT, Journal
from online_judge.queue.metrics import Metrics
from online_judge.queue.scheduler import QueueFull, Scheduler

log = logging.getLogger(__name__)

REFERENCE_FAILED = "Reference failed"
_MAX_STARTS = 25
_KILL_S = 60.0


class KeyInUse(Exception):
    """An idempotency key came with another body before."""


class JournalBroken(Exception):
    """A job cannot be accepted, because it could be lost."""


@dataclass(eq=False)
class JobBoard:
    """All jobs; used from one event loop."""

    _scheduler: Scheduler
    _evaluations: Evaluations
    _journal: Journal
    _cache: ResultCache  # which protocols use it depends on the settings
    _metrics: Metrics
    _jobs: dict[str, Job] = field(default_factory=dict, init=False)
    _by_key: dict[tuple[str, str], Job] = field(default_factory=dict, init=False)
    _finished: dict[str, deque[Job]] = field(default_factory=lambda: defaultdict(deque), init=False)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set, init=False)

    async def recover(self) -> None:
        """Continue the unfinished jobs of an earlier judge under the same ids."""
        for job in await self._journal.jobs():
            job.accepted.set()
            self._register(job)
            if job.answer is not None:
                self._conclude(job, job.answer)
            elif job.starts >= _MAX_STARTS:
                error = f"the judge itself ended {job.starts} times during this job"
                await self._finish(job, job.answer_of("failed", error=error))
            else:
                _log_event("recovered", job)
                try:
                    await self._identify(job)
                    self._queue(job, accepted_before=True)
                except NoSuchDevice as gone:
                    await self._finish(job, job.answer_of("failed", error=str(gone)))

    async def close(self) -> None:
        """Leave the unfinished jobs to the journal; the evaluations go on until the scheduler is closed."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        with _logged("the journal cannot be written"):
            await self._journal.rest()

    async def submit(self, job: Job) -> Job:
        """Accept a job, or find the caller's earlier one with the same idempotency key.

        Raises KeyInUse, QueueFull, NoSuchDevice or JournalBroken if it is refused.
        """
        known = self._by_key.get((job.caller.owner, job.key)) if job.key is not None else None
        if known is None:
            if job.durable:
                self._register(job)
            await asyncio.shield(self._spawn(self._accept(job)))
        elif known.digest not in (job.digest, ""):
            raise KeyInUse("this Idempotency-Key was used with another body; choose a new one")
        else:
            job = known
        await job.accepted.wait()
        if job.refusal is not None:
            raise job.refusal
        return job

    def find(self, job_id: str, owner: str) -> Job | None:
        """Return a job of v2; None if ``owner`` has no such job (any more)."""
        job = self._jobs.get(job_id)
        return job if job is not None and job.caller.owner == owner else None

    def look(self, job: Job) -> JobAnswer:
        if job.answer is not None:
            return job.answer
        return JobAnswer(
            id=job.id,
            kind=job.kind,
            state=job.state,
            position=self._scheduler.position(job),
            reason=self._absence(job),
            execution_time=time.monotonic() - job.created,
        )

    def _absence(self, job: Job) -> str:
        """Return why no device can take a queued job; empty if one can, or the job needs none."""
        needs_device = job.state == "queued" and job.kind != "compile"
        return self._evaluations.machine.absence if needs_device else ""

    async def wait(self, job: Job, seconds: float) -> None:
        """Wait for the end of a job, at most ``seconds``."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(job.over.wait(), seconds)

    async def cancel(self, job: Job) -> None:
        """End a job and wait for the end of its processes; do nothing if it is over."""
        if job.settled:
            await job.over.wait()
            return
        running = self._scheduler.withdraw(job)
        await self._finish(job, job.answer_of("cancelled"))
        if running:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(job.leader.ended.wait(), _KILL_S)

    def abandon(self, job: Job) -> None:
        """End a job of v1 whose client no longer waits; do nothing if it is over."""
        self._scheduler.withdraw(job)
        job.settled = True

    async def writable(self) -> bool:
        return await self._journal.writable()

    def count(self) -> dict[str, int]:
        counts = dict.fromkeys(get_args(JobState), 0)
        for job in self._jobs.values():
            counts[job.state] += 1
        return counts

    async def _accept(self, job: Job) -> None:
        """Answer a job at once or queue it, and write it to the journal.

        Sets ``accepted``, and ``refusal`` if the job is refused.
        """
        assert job.request is not None
        cached = asked = False
        try:
            job.outcome = self._evaluations.answer_at_once(job.kind, job.request)
            if job.outcome is None:
                await self._identify(job)
                question = self._kept_under(job)
                if asked := question is not None and not job.force:
                    job.outcome = await self._cache.get(question)
                    cached = job.outcome is not None
            if job.outcome is None:
                self._queue(job)
                if asked and job.leader is job:
                    self._metrics.looked_up("miss")
                await self._journal.accept(job)
            else:
                answer = self._answer(job, cached=cached)
                await self._journal.accept(job, answer)
                self._conclude(job, answer)
        except (QueueFull, NoSuchDevice) as error:
            self._refuse(job, error)
        except sqlite3.Error as error:
            log.error("the journal cannot be written: %s", error)
            self._refuse(job, JournalBroken(f"the judge's journal cannot be written: {error}"))
        except BaseException:  # the judge's own error: a retry with the same key must not hang
            self._refuse(job, JournalBroken("the judge failed while it took this job in; see its log"))
            raise
        else:
            _log_event("accepted", job, client=job.caller.owner or None, position=self.look(job).position)
            job.accepted.set()

    def _refuse(self, job: Job, error: Exception) -> None:
        self._scheduler.withdraw(job)
        self._forget(job)
        job.settled = True
        job.refusal = error
        job.accepted.set()

    async def _identify(self, job: Job) -> None:
        """Set a job's device, recorded reference time, and question; raises NoSuchDevice."""
        assert job.request is not None
        job.device = self._evaluations.device_of(job.kind, job.request)
        if job.kind not in ("candidate", "profile") or not isinstance(job.request, EvaluationRequest):
            return
        request = job.request

        def identify() -> None:
            job.recorded_ms = self._evaluations.recorded_ms(request)
            if job.durable or self._evaluations.settings.cache_v1:
                job.question = self._evaluations.question(request, job.recorded_ms, job.device, job.kind)

        await asyncio.to_thread(identify)  # it may read a file, and parses the source

    def _kept_under(self, job: Job) -> Question | None:
        """Return the key of a job's result in the cache; None if the cache is off for it."""
        settings = self._evaluations.settings
        return job.question if (settings.cache_v2 if job.durable else settings.cache_v1) else None

    def _queue(self, job: Job, *, accepted_before: bool = False) -> None:
        self._scheduler.submit(job, accepted_before=accepted_before)
        if job.leader is not job:
            self._metrics.looked_up("joined")
        self._spawn(self._follow(job))

    async def _follow(self, job: Job) -> None:
        """Wait for the start and the end of a job's evaluation, and write both to the journal."""
        leader = job.leader
        try:
            await leader.started.wait()
            if job.settled:
                return
            if job is leader.sharers[0]:
                self._metrics.spent({"queue": leader.queue_time_s})
            _log_event("started", job, seconds=time.monotonic() - job.created)
            with _logged(f"the start of job {job.id} cannot be written down"):
                await self._journal.begin(job)
            await leader.ended.wait()
            found = leader.outcome
            question = self._kept_under(job)
            known = question is not None and leader.hardware in question.hardware  # else it joined later
            if question is not None and known and isinstance(found, Verdict | ProfileReport):
                await self._cache.put(question, found)
            if found is not None and not job.settled:  # None when the judge is shutting down
                await self._finish(job, self._answer(job))
        except asyncio.CancelledError:
            job.over.set()
            raise

    async def _finish(self, job: Job, answer: JobAnswer) -> None:
        """End a job: first in the journal, then for the client. Only the first end counts."""
        if job.settled:
            return
        job.settled = True
        with _logged(f"the end of job {job.id} cannot be written down"):
            await self._journal.finish(job, answer)
        self._conclude(job, answer)
        status = None if answer.verdict is None else answer.verdict.status
        _log_event(answer.state, job, status=status, seconds=answer.execution_time, error=answer.error)

    def _answer(self, job: Job, *, cached: bool = False) -> JobAnswer:
        outcome = job.leader.outcome
        if isinstance(outcome, Exception):
            return job.answer_of("failed", error=_explain(outcome))
        return job.answer_of("done", found=outcome, cached=cached)

    def _conclude(self, job: Job, answer: JobAnswer) -> None:
        job.settled = True
        job.answer = answer
        if not job.sharers:  # its evaluation is no longer needed, or has ended
            job.request = None
        job.over.set()
        if job.durable:
            finished = self._finished[job.caller.owner]
            finished.append(job)
            while len(finished) > KEPT:
                self._forget(finished.popleft())

    def _register(self, job: Job) -> None:
        self._jobs[job.id] = job
        if job.key is not None:
            self._by_key[job.caller.owner, job.key] = job

    def _forget(self, job: Job) -> None:
        self._jobs.pop(job.id, None)
        if job.key is not None and self._by_key.get((job.caller.owner, job.key)) is job:
            del self._by_key[job.caller.owner, job.key]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


@contextlib.contextmanager
def _logged(trouble: str) -> Iterator[None]:
    """Log an error of the journal in the block, and go on."""
    try:
        yield
    except sqlite3.Error as error:
        log.error("%s: %s", trouble, error)


def _log_event(event: str, job: Job, **fields: str | float | None) -> None:
    if job.durable:
        log_event(f"job.{event}", job=job.id, kind=job.kind, **fields)


def _explain(error: Exception) -> str:
    if isinstance(error, ProblemError):
        return f"{REFERENCE_FAILED}: {error}"
    if isinstance(error, JudgeError):
        return str(error)
    log.error("an evaluation failed unexpectedly", exc_info=error)
    return f"the judge failed unexpectedly ({type(error).__name__}); see its log"
