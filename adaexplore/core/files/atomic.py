"""Atomic writes: a reader sees the old content or the new one, never a part."""

import contextlib
import errno
import fcntl
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adaexplore.core.errors import StorageError, UsageError


def cannot_write(path: Path, error: OSError, advice: str) -> StorageError:
    """Return the error for a ``path`` that cannot be written; ``advice`` names another place for it."""
    reason = error.strerror or error
    file = next((each for each in path.parents if os.path.exists(each) and not os.path.isdir(each)), None)
    if file is not None:
        reason = f"{file} is a file, not a folder"
    elif error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        advice = f"make the folder writable or {advice}"
    elif error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
        advice = f"free space or {advice}"
    return StorageError(f"cannot write {path}: {reason}; {advice}")


@contextlib.contextmanager
def locked(path: Path, advice: str, busy: str | None = None) -> Iterator[None]:
    """Lock the file ``path`` against other threads and processes; create it and its folder if needed.

    The lock is advisory and ends with the process.

    Args:
        path: the lock file.
        advice: another place to name if it cannot be created, for the message.
        busy: the message if the lock is held; None waits for it.

    Raises:
        UsageError: the lock is held, and ``busy`` is given.
        StorageError: the file cannot be created or locked.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("a")
    except OSError as error:
        raise cannot_write(path, error, advice) from error
    with handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX if busy is None else fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UsageError(busy or "") from error
        except OSError as error:
            raise StorageError(f"cannot lock {path}: {error.strerror or error}; {advice}") from error
        yield


def write_text(path: Path, text: str) -> None:
    """Write ``text`` (UTF-8) to ``path`` atomically; create its folder if needed.

    Lone surrogates, which UTF-8 cannot hold, become escapes, so that each string in JSON reads back exactly.
    Only one writer per path at a time: the temporary file has a fixed name, so that the file of a
    killed process is overwritten when the work is repeated.

    Raises:
        StorageError: the file cannot be written.
    """
    temporary = path.with_name(f".{path.name}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with temporary.open("w", encoding="utf-8", errors="backslashreplace", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.replace(temporary, path)
    except OSError as error:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise cannot_write(path, error, "choose another place") from error


def write_json(path: Path, data: Any) -> None:
    """Write ``data`` as indented JSON to ``path`` atomically.

    Raises:
        StorageError: the file cannot be written.
    """
    write_text(path, json_text(data))


def json_text(data: Any) -> str:
    """Return the text that :func:`write_json` writes."""
    return json.dumps(data, indent=2, ensure_ascii=False) + "\n"
