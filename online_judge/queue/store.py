"""The judge's SQLite file: one connection, used by one thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sqlite3
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from adaexplore.core.errors import ConfigError

Statement = tuple[str, *tuple[object, ...]]
"""A statement in SQL and its values."""
_Rows = list[tuple[Any, ...]]

_LAYOUT = 2
_BUSY_S = 1.0
UNUSED_DAYS = 30
MAX_REASON = 300
"""Characters that the log has of why a row cannot be read."""
_JOBS = """
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL DEFAULT '', idempotency_key TEXT,
    digest TEXT NOT NULL, kind TEXT NOT NULL, accepted REAL NOT NULL, starts INTEGER NOT NULL DEFAULT 0,
    body TEXT, answer TEXT, UNIQUE (owner, idempotency_key)
);
CREATE INDEX unfinished ON jobs (number) WHERE answer IS NULL;
"""
_RESULTS = """
CREATE TABLE results (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, verdict TEXT NOT NULL);
"""
_FINISHED = "CREATE INDEX IF NOT EXISTS finished ON jobs (owner, number) WHERE answer IS NOT NULL"
_PROBE = "CREATE TABLE probe (number INTEGER PRIMARY KEY, content BLOB);"
COLUMNS = "id, idempotency_key, digest, kind, accepted, starts, body, answer"
_SCRIPTS = {
    0: f"{_JOBS} {_RESULTS} {_PROBE}",
    1: f"ALTER TABLE jobs RENAME TO jobs_1; DROP INDEX unfinished; {_JOBS} {_PROBE} "
    f"INSERT INTO jobs (number, {COLUMNS}) SELECT number, {COLUMNS} FROM jobs_1; DROP TABLE jobs_1;",
}
"""Scripts that make the present layout out of an older one; 0 is an empty file."""


class Store:
    """Executes transactions in their order; committed changes survive a kill of the judge.

    After a power failure the latest changes may be missing.
    """

    def __init__(self, path: Path | None) -> None:
        """Open or create the file; None keeps everything in memory.

        Raises ConfigError if it cannot be opened, another judge uses it, or its layout is unknown.
        """
        self._lock = -1
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="store")
        self._waiting: list[tuple[tuple[Statement, ...], asyncio.Future[_Rows]]] = []
        self._writer: asyncio.Task[None] | None = None  # runs while transactions wait
        try:
            if path is not None:
                self._lock = _claim(path)
            self._connection = self._executor.submit(_open, path).result()
        except (OSError, sqlite3.Error) as error:
            self._release()
            raise ConfigError(
                f"JUDGE_STATE {path} cannot be used ({error}); name another file or set it to nothing"
            ) from error
        except ConfigError:
            self._release()
            raise

    async def execute(self, *statements: Statement) -> _Rows:
        """Execute one transaction, all or nothing; return the rows of its last statement.

        Transactions that wait at the same time are committed together.
        """
        rows: asyncio.Future[_Rows] = asyncio.get_running_loop().create_future()
        self._waiting.append((statements, rows))
        if self._writer is None or self._writer.done():
            self._writer = asyncio.create_task(self._write())
        return await rows

    async def _write(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting, []
            commit = partial(self._commit, [statements for statements, _ in batch])
            outcomes = await asyncio.get_running_loop().run_in_executor(self._executor, commit)
            for (_, rows), outcome in zip(batch, outcomes, strict=True):
                if rows.cancelled():
                    continue
                if isinstance(outcome, Exception):
                    rows.set_exception(outcome)
                else:
                    rows.set_result(outcome)

    def _commit(self, batch: list[tuple[Statement, ...]]) -> list[_Rows | Exception]:
        """Execute transactions and commit them together, or each alone if one of them fails."""
        try:
            with self._connection:
                return [
                    [self._connection.execute(text, values).fetchall() for text, *values in statements][-1]
                    for statements in batch
                ]
        except Exception as error:  # noqa: BLE001 - the error is the transaction's outcome
            if len(batch) == 1:
                return [error]
            return [outcome for statements in batch for outcome in self._commit([statements])]

    def close(self) -> None:
        """Finish pending transactions and close the file."""
        self._executor.submit(self._connection.close).result()
        self._release()

    def _release(self) -> None:
        self._executor.shutdown()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


def remove_unused(folder: Path, keep: Path) -> None:
    """Remove unused state files in ``folder`` that have not changed for :data:`UNUSED_DAYS`."""
    with contextlib.suppress(OSError):
        for path in set(folder.glob("*.sqlite")) - {keep}:
            files = [path, *folder.glob(f"{path.name}-*")]
            if time.time() - max(file.stat().st_mtime for file in files) < UNUSED_DAYS * 86400:
                continue
            with contextlib.suppress(ConfigError):  # another judge uses it
                lock = _claim(path)
                for file in (*files, path.with_name(f"{path.name}.lock")):
                    file.unlink(missing_ok=True)
                os.close(lock)


def _claim(path: Path) -> int:
    """Hold the file's lock until the descriptor is closed, so that no two judges finish the same jobs."""
    path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    lock = os.open(path.with_name(f"{path.name}.lock"), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(lock)
        raise ConfigError(
            f"JUDGE_STATE {path} is in use by another judge; stop it or name another file"
        ) from None
    with contextlib.suppress(FileExistsError):
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
    return lock


def _open(path: Path | None) -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:" if path is None else path, timeout=_BUSY_S)
    connection.text_factory = partial(str, encoding="utf-8", errors="surrogateescape")
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if layout in _SCRIPTS:
            connection.executescript(f"BEGIN; {_SCRIPTS[layout]} PRAGMA user_version = {_LAYOUT}; COMMIT;")
        elif layout != _LAYOUT:
            raise ConfigError(f"JUDGE_STATE {path} is of another version ({layout}); name another file")
        connection.execute(_FINISHED)  # older judges do not need it
    except BaseException:
        connection.close()
        raise
    return connection
