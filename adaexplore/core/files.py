"""Atomic writes: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from adaexplore.core.errors import StorageError


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
