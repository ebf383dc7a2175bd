"""Atomic writes: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adaexplore.core.errors import StorageError, UsageError


@contextlib.contextmanager
def locked(path: Path, advice: str, busy: str | None = None) -> Iterator[None]:
    """Hold the lock file ``path``, made with its folder, against other threads and processes.

    The lock is advisory and ends with the process.

    Args:
        path: the lock file.
        advice: what to do where it cannot be made, for the message.
        busy: the message where another one holds it; None waits for that one.

    Raises:
        UsageError: another one holds it, and ``busy`` is given.
        StorageError: it cannot be made or locked.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("a")
    except OSError as error:
        raise StorageError(f"cannot write {path}: {error.strerror or error}; {advice}") from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if busy is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(busy or "") from error
        except OSError as error:
            raise StorageError(f"cannot lock {path}: {error.strerror or error}; {advice}") from error
        yield


def write_text(path: Path, text: str) -> None:
    """Write ``text`` (UTF-8) to ``path`` atomically, making its folder.

    One writer a path at a time: the temporary file has a fixed name beside it, so that what a killed
    process left is overwritten when the work is done again.

    Raises:
        StorageError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        reason = error.strerror or error
        raise StorageError(
            f"cannot write {path}: {reason}; free space or choose another save_path"
        ) from error


def write_json(path: Path, data: Any) -> None:
    """Write ``data`` as indented JSON to ``path`` atomically.

    Raises:
        StorageError: the file cannot be written.
    """
    write_text(path, json.dumps(data, indent=2, ensure_ascii=False) + "\n")
