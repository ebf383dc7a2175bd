"""Atomic writes: a reader sees the old content or the new one, never a part."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path
from typing import Any

from adaexplore.core.errors import StorageError


def write_text(path: Path, text: str) -> None:
    """Write ``text`` (UTF-8) to ``path`` atomically, making its folder.

    Raises:
        StorageError: the file cannot be written.
    """
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
        with os.fdopen(handle, "w", encoding="utf-8", newline="") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        os.chmod(temporary, 0o644)
        os.replace(temporary, path)
    except OSError as error:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)
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
