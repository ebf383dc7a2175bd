"""The accepted jobs of protocol v2, so that a judge that was killed finishes them."""

from __future__ import annotations

import json
import logging
import sqlite3
import time
from typing import Any, get_args

from adaexplore.core.job_answer import JobAnswer
from adaexplore.core.wire import JobKind, JobRequest
from online_judge.common import printable
from online_judge.common.tokens import Caller
from online_judge.queue.job import Job
from online_judge.queue.store import COLUMNS, MAX_REASON, Statement, Store

log = logging.getLogger(__name__)

KEPT = 2000
"""Finished jobs of one owner that can still be asked for."""
UNREADABLE = "the judge cannot read this job in its state file any more; submit it again under another key"
_FAIL = (  # the body stays for inspection
    "UPDATE jobs SET idempotency_key = ?, digest = ?, kind = ?, accepted = 0, starts = 0, answer = ? "
    "WHERE number = ?"
)
_PROBE_BYTES = 16 * 1024
_PROBE_S = 1.0


class Journal:
    """Reads and writes the jobs of v2, none of v1; a method returns when its change is on disk."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._probed: tuple[float, bool] | None = None

    async def accept(self, job: Job, answer: JobAnswer | None = None) -> None:
        """Write down a new job, with its answer if that is known at once."""
        if job.durable and answer is None:
            await self._store.execute(_insert(job, job.body, None))
        elif job.durable:
            await self._store.execute(_insert(job, None, answer), _drop_oldest(job))

    async def begin(self, job: Job) -> None:
        if job.durable:
            await self._store.execute(("UPDATE jobs SET starts = starts + 1 WHERE id = ?", job.id))

    async def rest(self) -> None:
        """Set all starts to 0: this shutdown is orderly, so no job is to blame."""
        await self._store.execute(("UPDATE jobs SET starts = 0 WHERE answer IS NULL",))

    async def finish(self, job: Job, answer: JobAnswer) -> None:
        """Write down the end of a job; drop the oldest finished ones beyond :data:`KEPT`."""
        if job.durable:
            # the new number makes the order that of ends, by which the oldest are dropped
            update = (
                "UPDATE jobs SET answer = ?, body = NULL, number = (SELECT MAX(number) + 1 FROM jobs) "
                "WHERE id = ? AND answer IS NULL"
            )
            await self._store.execute((update, _text(answer), job.id), _drop_oldest(job))

    async def jobs(self) -> list[Job]:
        """Return all jobs; finished ones in the order of their ends, others in that of their acceptance.

        One that cannot be read has failed.
        """
        rows = await self._store.execute((f"SELECT number, owner, {COLUMNS} FROM jobs ORDER BY number",))
        jobs = [await self._job_or_stub(number, columns) for number, *columns in rows]
        return [job for job in jobs if job is not None]

    async def _job_or_stub(self, number: int, columns: list[Any]) -> Job | None:
        """Return the job of a row; a failed job if it is unreadable, None if it has no id either."""
        try:
            return _job(*columns)
        except (ValueError, TypeError, RecursionError) as error:
            log.error("row %d of the state file's jobs cannot be read (%r)", number, str(error)[:MAX_REASON])
        owner, job_id, key, digest = (part if _is_plain(part) else None for part in columns[:4])
        if job_id is None or owner is None:
            return None
        stub = Job("candidate", None, Caller(owner, owner), id=job_id, durable=True, key=key)
        stub.digest = digest or ""
        stub.answer = JobAnswer(id=job_id, kind="candidate", state="failed", error=UNREADABLE)
        await self._store.execute((_FAIL, key, stub.digest, stub.kind, _text(stub.answer), number))
        return stub

    async def writable(self) -> bool:
        """Return True if a row as large as a job can be written; try at most once a second."""
        now = time.monotonic()
        if self._probed is None or now - self._probed[0] >= _PROBE_S:
            try:
                probe = "INSERT OR REPLACE INTO probe (number, content) VALUES (1, zeroblob(?))"
                await self._store.execute((probe, _PROBE_BYTES))
                await self._store.execute(("DELETE FROM probe",))  # apart, so that it reaches the disk
                self._probed = (now, True)
            except sqlite3.Error as error:
                log.error("the journal cannot be written: %s", error)
                self._probed = (now, False)
        return self._probed[1]


def _insert(job: Job, body: JobRequest | None, answer: JobAnswer | None) -> Statement:
    asked = None if body is None else json.dumps(body.model_dump())
    answered = None if answer is None else _text(answer)
    return (
        "INSERT INTO jobs (id, owner, idempotency_key, digest, kind, accepted, body, answer) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        *(job.id, job.caller.owner, job.key, job.digest, job.kind, job.accepted_at, asked, answered),
    )


def _drop_oldest(job: Job) -> Statement:
    """Drop the oldest finished jobs beyond :data:`KEPT` of the owner of a job."""
    finished = "answer IS NOT NULL AND owner = ?"
    latest = f"SELECT number FROM jobs WHERE {finished} ORDER BY number DESC LIMIT 1 OFFSET ?"
    owner = job.caller.owner
    return (f"DELETE FROM jobs WHERE {finished} AND number <= ({latest})", owner, owner, KEPT)


def _job(
    owner: str,
    job_id: str,
    key: str | None,
    digest: str,
    kind: JobKind,
    accepted: float,
    starts: int,
    body: str | None,
    answer: str | None,
) -> Job:
    """Return the job of a row, or raise ValueError, TypeError or RecursionError: columns have any type."""
    if not all(map(_is_plain, (job_id, owner, digest, "" if key is None else key))):
        raise ValueError("id, owner, key and digest must be text")
    if kind not in get_args(JobKind) or not isinstance(starts, int):
        raise ValueError(f"kind {kind!r} or starts {starts!r} cannot be")
    if body is None and answer is None:
        raise ValueError("there is neither a body nor an answer")
    asked = None if body is None or answer is not None else JobRequest.model_validate(json.loads(body))
    return Job(
        kind,
        None if asked is None else asked.request,
        Caller(owner, owner),
        0 if asked is None else asked.priority,
        asked is not None and asked.force,
        id=job_id,
        durable=True,
        key=key,
        digest=digest,
        accepted_at=float(accepted),
        starts=starts,
        answer=None if answer is None else JobAnswer.model_validate(printable.tree(json.loads(answer))),
    )


def _is_plain(part: object) -> bool:
    return isinstance(part, str) and printable.text(part) == part


def _text(answer: JobAnswer) -> str:
    return json.dumps(answer.model_dump(mode="json"))
