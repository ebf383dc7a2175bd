"""The judge's SQLite file: one connection, used by one thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import fcntl
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from adaexplore.core.errors import ConfigError

T = TypeVar("T")

_LAYOUT = 1
_BUSY_S = 1.0
_TABLES = """
CREATE TABLE jobs (
    number INTEGER PRIMARY KEY,
    id TEXT NOT NULL UNIQUE,
    idempotency_key TEXT UNIQUE,
    digest TEXT NOT NULL,
    kind TEXT NOT NULL,
    accepted REAL NOT NULL,
    starts INTEGER NOT NULL DEFAULT 0,
    body TEXT,
    answer TEXT
);
CREATE INDEX unfinished ON jobs (number) WHERE answer IS NULL;
CREATE TABLE results (number INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, verdict TEXT NOT NULL);
"""


class Store:
    """Runs functions of the connection one after the other; what one has returned is on disk.

    That holds when the judge is killed; after a power failure the last moments may be missing.
    """

    def __init__(self, path: Path | None) -> None:
        """Open or make the file; None keeps everything in memory.

        Raises:
            ConfigError: it cannot be opened, another judge has it, or it is none of ours.
        """
        self._lock = -1
        self._executor = ThreadPoolExecutor(1, thread_name_prefix="store")
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

    async def do(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run ``work`` as one transaction.

        Raises:
            sqlite3.Error: it failed and nothing of it is kept.
        """

        def transact() -> T:
            with self._connection:
                return work(self._connection)

        return await asyncio.get_running_loop().run_in_executor(self._executor, transact)

    def close(self) -> None:
        """Finish what is under way and close the file."""
        self._executor.submit(self._connection.close).result()
        self._release()

    def _release(self) -> None:
        self._executor.shutdown()
        if self._lock >= 0:
            os.close(self._lock)
            self._lock = -1


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
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        if layout == 0:
            connection.executescript(f"BEGIN; {_TABLES} PRAGMA user_version = {_LAYOUT}; COMMIT;")
        elif layout != _LAYOUT:
            raise ConfigError(f"JUDGE_STATE {path} is of another version ({layout}); name another file")
    except BaseException:
        connection.close()
        raise
    return connection
