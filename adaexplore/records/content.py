"""Text in and out of files: errors name the file and say what to do, odd characters survive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from adaexplore.core.errors import RecordError
from adaexplore.core.files import write_text


def write(path: Path, text: str) -> None:
    """Write ``text`` atomically; half of a surrogate pair, which UTF-8 cannot hold, becomes its escape.

    Raises:
        StorageError: the file cannot be written.
    """
    write_text(path, text.encode("utf-8", "backslashreplace").decode("utf-8"))


def write_json(path: Path, data: Any) -> None:
    """Write ``data`` as indented JSON atomically; every string reads back exactly.

    Raises:
        StorageError: the file cannot be written.
    """
    write(path, json_text(data))


def json_text(data: Any) -> str:
    """What :func:`write_json` writes: half of a surrogate pair becomes its JSON escape."""
    text = json.dumps(data, indent=2, ensure_ascii=False) + "\n"
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def read(path: Path) -> str:
    """The text of ``path``, line ends as they are.

    Raises:
        RecordError: it is missing, unreadable or not UTF-8.
    """
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        raise RecordError(
            f"{path} is missing; restore it, or have `adaexplore repair RUN` set its step aside"
        ) from error
    except OSError as error:
        raise RecordError(f"cannot read {path}: {error.strerror or error}") from error
    except UnicodeDecodeError as error:
        raise damaged(path, "it is not UTF-8") from error


def read_object(path: Path) -> dict[str, Any]:
    """The JSON object in ``path``.

    Raises:
        RecordError: it is missing or holds no JSON object.
    """
    try:
        data = json.loads(read(path))
    except (ValueError, RecursionError) as error:
        raise damaged(path, f"it is no JSON ({error})") from error
    if not isinstance(data, dict):
        raise damaged(path, "it holds no JSON object")
    return data


def damaged(path: Path, reason: str) -> RecordError:
    """The error for a file whose content makes no sense."""
    return RecordError(
        f"{path} is damaged: {reason}; restore it, or have `adaexplore repair RUN` set it aside"
    )


def reason(error: Exception) -> str:
    """One line of what was wrong with a file's content."""
    if isinstance(error, KeyError):
        return f"the key {error.args[0]!r} is missing"
    return " ".join(str(error).split())
