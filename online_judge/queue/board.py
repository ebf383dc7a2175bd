"""Jobs of protocol v2: taken in once, judged once, remembered."""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import sqlite3
import time
import uuid
from collections import defaultdict
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, get_args

from adaexplore.core.errors import JudgeError, ProblemError
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import JobAnswer, JobRequest, JobState, ProfileReport
from online_judge.common.events import tell
from online_judge.common.tokens import Caller
from online_judge.queue.cache import Known, Question, ResultCache
from online_judge.queue.entries import Answered, Entry, Run
from online_judge.queue.evaluations import Evaluations, Finding, NoSuchDevice
from online_judge.queue.journal import KEPT, JobRow, Journal
from online_judge.queue.metrics import Metrics
from online_judge.queue.scheduler import Job, QueueFull, Scheduler

log = logging.getLogger(__name__)

REFERENCE_FAILED = "Reference failed"
_MAX_STARTS = 25
_KILL_S = 60.0


class KeyInUse(Exception):
    """An idempotency key came with another body before."""


class JournalBroken(Exception):
    """A job cannot be taken in, because it could be lost."""


class JobBoard:
    """All jobs of v2; used from one event loop."""

    def __init__(
        self,
        scheduler: Scheduler,
        compiles: Scheduler,
        evaluations: Evaluations,
        journal: Journal,
        cache: ResultCache | None,
        metrics: Metrics,
    ) -> None:
        """Know no job yet.

        Args:
            scheduler: of the devices.
            compiles: of jobs of kind ``compile``, which need no device.
            evaluations: what jobs mean.
            journal: where they are written down.
            cache: known verdicts; without it every job is judged.
            metrics: told of them.
        """
        self._scheduler = scheduler
        self._compiles = compiles
        self._evaluations = evaluations
        self._journal = journal
        self._cache = cache
        self._metrics = metrics
        self._entries: dict[str, Entry] = {}
        self._by_key: dict[tuple[str, str], Entry] = {}
        self._runs: dict[tuple[object, ...], Run] = {}
        self._finished: defaultdict[str, list[Entry]] = defaultdict(list)
        self._tasks: set[asyncio.Task[None]] = set()

    async def recover(self) -> None:
        """Take up what an earlier judge left unfinished, under the same ids."""
        loop = asyncio.get_running_loop()
        for row in await self._journal.rows():
            entry = Entry(row, loop.create_future(), caller=Caller(row.owner, row.owner))
            entry.accepted.set_result(None)
            self._register(entry)
            if row.answer is not None:
                self._conclude(entry, row.answer)
            elif row.starts >= _MAX_STARTS:
                await self._settle(
                    entry, "failed", error=f"the judge itself ended {row.starts} times during this job"
                )
            else:
                tell("job.recovered", job=row.id, kind=row.kind)
                assert row.body is not None
                try:
                    self._admit(entry, row.body, await self._question(row.body), admitted=True)
                except NoSuchDevice as error:
                    await self._settle(entry, "failed", error=str(error))

    async def close(self) -> None:
        """Let go of what runs; the journal still has it."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        try:
            await self._journal.rest()
        except sqlite3.Error as error:
            log.error("the journal cannot be written: %s", error)

    async def submit(
        self, body: JobRequest, key: str | None, caller: Caller, answered: Answered | None = None
    ) -> JobAnswer:
        """Take a job in, or find the caller's own that came with the same idempotency key.

        A job that is ``answered`` already is over at once.

        Raises:
            KeyInUse: the key came with another body.
            QueueFull: as many wait as may.
            NoSuchDevice: it names a device that is not here.
            JournalBroken: it cannot be written down.
        """
        digest = _digest(body)
        known = self._by_key.get((caller.owner, key)) if key is not None else None
        if known is not None:
            if known.row.digest not in (digest, ""):  # of a job that cannot be read any more it is unknown
                raise KeyInUse("this Idempotency-Key was used with another body; choose a new one")
            await asyncio.shield(known.accepted)
            return known.look(self._scheduler)
        row = JobRow(uuid.uuid4().hex, key, digest, body.kind, time.time(), body=body, owner=caller.owner)
        entry = Entry(row, asyncio.get_running_loop().create_future(), caller=caller)
        self._register(entry)
        try:
            await asyncio.shield(self._spawn(self._accept(entry, body, answered)))
        finally:
            if entry.accepted.done():
                entry.accepted.exception()  # others may wait for it, or nobody
        entry.accepted.result()
        return entry.look(self._scheduler)

    def answer(self, job_id: str, owner: str) -> JobAnswer | None:
        """How a job stands; None if ``owner`` has no such job (any more)."""
        entry = self._entry(job_id, owner)
        return None if entry is None else entry.look(self._scheduler)

    async def wait(self, job_id: str, owner: str, seconds: float) -> None:
        """Return when the job of ``owner`` is over, at the latest after ``seconds``."""
        entry = self._entry(job_id, owner)
        if entry is not None and not entry.done.is_set() and seconds > 0:
            waiting = asyncio.ensure_future(entry.done.wait())
            await asyncio.wait({waiting}, timeout=seconds)
            waiting.cancel()

    async def cancel(self, job_id: str, owner: str) -> JobAnswer | None:
        """End a job of ``owner``, its processes included; one that is over stays as it is."""
        entry = self._entry(job_id, owner)
        if entry is None:
            return None
        run = entry.run
        if entry.settling:
            await entry.done.wait()
        else:
            running = None
            if run is not None:
                running = self._unsubscribe(run, entry)
            await self._settle(entry, "cancelled")
            if running is not None:
                await asyncio.wait({running.done}, timeout=_KILL_S)
        return entry.look(self._scheduler)

    async def writable(self) -> bool:
        """Whether jobs can be taken in safely."""
        return await self._journal.writable()

    def count(self) -> dict[str, int]:
        """Known jobs by state."""
        counts = dict.fromkeys(get_args(JobState), 0)
        for entry in self._entries.values():
            counts[entry.look(self._scheduler).state] += 1
        return counts

    async def _accept(self, entry: Entry, body: JobRequest, answered: Answered | None) -> None:
        """From the client's word to the journal's; the outcome is in ``entry.accepted``."""
        try:
            question = None if answered is not None else await self._question(body)
            found = None if body.force else await self._known(question)
            answer = None
            if answered is not None:
                state: JobState = "done" if answered.error is None else "failed"
                answer = entry.answer_of(state, found=answered.finding, error=answered.error)
            elif found is not None:
                answer = entry.answer_of("done", found=found, cached=True)
            if answer is not None:
                await self._journal.accept(replace(entry.row, body=None, answer=answer))
                self._conclude(entry, answer)
            else:
                self._admit(entry, body, question)
                await self._journal.accept(entry.row)
        except (QueueFull, NoSuchDevice) as error:
            self._refuse(entry, error)
        except sqlite3.Error as error:
            log.error("the journal cannot be written: %s", error)
            if entry.run is not None:
                self._unsubscribe(entry.run, entry)
            self._refuse(entry, JournalBroken(f"the judge's journal cannot be written: {error}"))
        except BaseException:  # an error of the judge itself: a retry with the same key must not hang
            if entry.run is not None:
                self._unsubscribe(entry.run, entry)
            self._refuse(entry, JournalBroken("the judge failed while it took this job in; see its log"))
            raise
        else:
            tell(
                "job.accepted",
                job=entry.row.id,
                kind=body.kind,
                client=entry.row.owner or None,
                position=entry.look(self._scheduler).position,
            )
            entry.accepted.set_result(None)

    def _refuse(self, entry: Entry, error: Exception) -> None:
        self._forget(entry)
        entry.conclude(entry.answer_of("failed", error=str(error)))
        entry.accepted.set_exception(error)

    def _admit(
        self, entry: Entry, body: JobRequest, question: Question | None, *, admitted: bool = False
    ) -> None:
        """Join an identical evaluation that is on its way, else queue a new one; does not wait."""
        caller = entry.caller
        device = self._evaluations.device_of(body.kind, body.request)
        identity = entry.row.id if question is None else question.exact
        key = (identity, body.request.timeout, device)
        run = self._runs.get(key)
        if run is not None and not body.force:
            self._scheduler.join(
                run.job,
                priority=body.priority,
                client=caller.turn,
                max_queued=caller.max_queued,
                admitted=admitted,
            )
            self._metrics.looked_up("joined")
            run.entries.append(entry)
            entry.run = run
            if run.job.started.done():
                self._spawn(self._begin(entry))
            return
        work = self._evaluations.work(body.kind, body.request)
        scheduler = self._compiles if body.kind == "compile" else self._scheduler
        job = scheduler.submit(
            work,
            device,
            priority=body.priority,
            client=caller.turn,
            max_queued=caller.max_queued,
            admitted=admitted,
        )
        entry.run = run = Run(job, key, question, [entry])
        self._runs[key] = run
        run.task = self._spawn(self._follow(run))

    async def _follow(self, run: Run) -> None:
        """Wait for an evaluation and tell everybody who waits for it."""
        await run.job.started
        self._metrics.spent({"queue": run.job.queue_time_s})
        await asyncio.gather(*(self._begin(entry) for entry in run.entries))
        await asyncio.wait({run.job.done})
        if self._runs.get(run.key) is run:
            del self._runs[run.key]
        if run.job.done.cancelled():
            return  # the judge is closing
        error = run.job.done.exception()
        found: Finding | None = None if error is not None else run.job.done.result()
        if (
            isinstance(found, Verdict | ProfileReport)
            and run.question is not None
            and self._cache is not None
        ):
            await self._cache.put(run.question, found)
        for entry in list(run.entries):
            if found is not None:
                await self._settle(entry, "done", found=found)
            elif error is not None:
                await self._settle(entry, "failed", error=_explain(error))
            self._unsubscribe(run, entry)

    def _unsubscribe(self, run: Run, entry: Entry) -> Job | None:
        """One less waits for a run; the last one ends it. Gives the job if that has to be waited for."""
        if entry not in run.entries:
            return None
        leaver = entry.caller.turn
        if run.entries[0] is entry and len(run.entries) > 1:  # the next one takes its place in the queue
            leaver = run.job.client = run.entries[1].caller.turn
        run.entries.remove(entry)
        if run.entries:
            self._scheduler.leave(run.job, leaver)
            return None
        if self._runs.get(run.key) is run:
            del self._runs[run.key]
        started = run.job.started.done()
        run.job.cancel()
        if not started and run.task is not None:
            run.task.cancel()
        return run.job if started else None

    async def _question(self, body: JobRequest) -> Question | None:
        """What identifies the verdict on a candidate, or its profile; other kinds have none."""
        if body.kind not in ("candidate", "profile"):
            return None
        device = self._evaluations.device_of(body.kind, body.request)
        return await asyncio.to_thread(self._evaluations.question, body.request, device, body.kind)

    async def _known(self, question: Question | None) -> Known | None:
        if self._cache is None or question is None:
            return None
        return await self._cache.get(question)

    async def _begin(self, entry: Entry) -> None:
        tell("job.started", job=entry.row.id, kind=entry.row.kind, seconds=time.monotonic() - entry.begun)
        try:
            await self._journal.begin(entry.row.id)
        except sqlite3.Error as error:
            log.error("the start of job %s cannot be written down: %s", entry.row.id, error)

    async def _settle(
        self, entry: Entry, state: JobState, *, found: Finding | None = None, error: str | None = None
    ) -> None:
        """End a job: first in the journal, then for the client; only the first end counts."""
        if entry.settling:
            return
        entry.settling = True
        answer = entry.answer_of(state, found=found, error=error)
        try:
            await self._journal.finish(entry.row.id, answer)
        except sqlite3.Error as trouble:
            log.error("the end of job %s cannot be written down: %s", entry.row.id, trouble)
        self._conclude(entry, answer)
        status = answer.verdict.status if answer.verdict is not None else None
        tell(
            f"job.{state}",
            job=entry.row.id,
            kind=entry.row.kind,
            status=status,
            seconds=answer.execution_time,
            error=error,
        )

    def _conclude(self, entry: Entry, answer: JobAnswer) -> None:
        entry.conclude(answer)
        finished = self._finished[entry.row.owner]
        finished.append(entry)
        while len(finished) > KEPT:
            self._forget(finished.pop(0))

    def _register(self, entry: Entry) -> None:
        self._entries[entry.row.id] = entry
        if entry.row.key is not None:
            self._by_key[entry.row.owner, entry.row.key] = entry

    def _entry(self, job_id: str, owner: str) -> Entry | None:
        entry = self._entries.get(job_id)
        return entry if entry is not None and entry.row.owner == owner else None

    def _forget(self, entry: Entry) -> None:
        self._entries.pop(entry.row.id, None)
        if entry.row.key is not None and self._by_key.get((entry.row.owner, entry.row.key)) is entry:
            del self._by_key[entry.row.owner, entry.row.key]

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _digest(body: JobRequest) -> str:
    text = json.dumps(body.model_dump(), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _explain(error: BaseException) -> str:
    if isinstance(error, ProblemError):
        return f"{REFERENCE_FAILED}: {error}"
    if isinstance(error, JudgeError):
        return str(error)
    log.error("an evaluation failed unexpectedly", exc_info=error)
    return f"the judge failed unexpectedly ({type(error).__name__}); see its log"
