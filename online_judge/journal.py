"""The accepted jobs of protocol v2, so that a judge that was killed finishes them."""

from __future__ import annotations

import json
import sqlite3
from dataclasses import dataclass
from typing import Any

from adaexplore.core.wire import JobAnswer, JobKind, JobRequest
from online_judge.store import Store

KEPT = 2000
"""Finished jobs that can still be asked for."""


@dataclass(frozen=True)
class JobRow:
    """One accepted job.

    Attributes:
        id: towards clients.
        key: idempotency key, if the client sent one.
        digest: hash of what was asked.
        kind: of the job.
        accepted: when, in seconds since the epoch.
        starts: how often it was begun since the judge last ended in order.
        body: what was asked; None once it is finished.
        answer: what came of it; None until it is finished.
    """

    id: str
    key: str | None
    digest: str
    kind: JobKind
    accepted: float
    starts: int = 0
    body: JobRequest | None = None
    answer: JobAnswer | None = None


class Journal:
    """Reads and writes job rows; every method returns when it is on disk."""

    def __init__(self, store: Store) -> None:
        """Write to ``store``."""
        self._store = store

    async def accept(self, row: JobRow) -> None:
        """A job is taken in, perhaps with its answer at hand."""
        body = None if row.body is None else json.dumps(row.body.model_dump())
        values = (row.id, row.key, row.digest, row.kind, row.accepted, body, _text(row.answer))
        await self._execute(
            "INSERT INTO jobs (id, idempotency_key, digest, kind, accepted, body, answer) "
            "VALUES (?, ?, ?, ?, ?, ?, ?)",
            *values,
        )

    async def forget(self, job_id: str) -> None:
        """A job was not taken in after all."""
        await self._execute("DELETE FROM jobs WHERE id = ?", job_id)

    async def begin(self, job_id: str) -> None:
        """A job starts to run."""
        await self._execute("UPDATE jobs SET starts = starts + 1 WHERE id = ?", job_id)

    async def rest(self) -> None:
        """The judge ends in order: no job had a part in that, so none counts as begun."""
        await self._execute("UPDATE jobs SET starts = 0 WHERE answer IS NULL")

    async def finish(self, job_id: str, answer: JobAnswer) -> None:
        """A job is over; the oldest finished ones beyond :data:`KEPT` are dropped."""
        text = _text(answer)

        def write(connection: sqlite3.Connection) -> None:
            connection.execute(
                "UPDATE jobs SET answer = ?, body = NULL WHERE id = ? AND answer IS NULL", (text, job_id)
            )
            connection.execute(
                "DELETE FROM jobs WHERE answer IS NOT NULL AND number <= "
                "(SELECT number FROM jobs WHERE answer IS NOT NULL ORDER BY number DESC LIMIT 1 OFFSET ?)",
                (KEPT,),
            )

        await self._store.do(write)

    async def rows(self) -> list[JobRow]:
        """All jobs in the order of their acceptance."""

        def read(connection: sqlite3.Connection) -> list[JobRow]:
            found = connection.execute(
                "SELECT id, idempotency_key, digest, kind, accepted, starts, body, answer "
                "FROM jobs ORDER BY number"
            )
            return [_row(columns) for columns in found]

        return await self._store.do(read)

    async def _execute(self, statement: str, *values: Any) -> None:
        def write(connection: sqlite3.Connection) -> None:
            connection.execute(statement, values)

        await self._store.do(write)


def _row(columns: tuple[Any, ...]) -> JobRow:
    job_id, key, digest, kind, accepted, starts, body, answer = columns
    return JobRow(
        job_id,
        key,
        digest,
        kind,
        accepted,
        starts,
        None if body is None else JobRequest.model_validate(json.loads(body)),
        None if answer is None else JobAnswer.model_validate(json.loads(answer)),
    )


def _text(answer: JobAnswer | None) -> str | None:
    return None if answer is None else json.dumps(answer.model_dump(mode="json"))
