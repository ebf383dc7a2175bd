"""A file with one JSON value per line; each is written at once, so that a killed process loses nothing."""

import json
import logging
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from adaexplore.core.errors import StorageError
from adaexplore.core.files.inputs import first_fault, regular_bytes

logger = logging.getLogger(__name__)

T = TypeVar("T")


class JsonLines:
    """A JSON-lines file; several threads may append, but only one process at a time."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()

    def append(self, value: Any) -> None:
        """Write one line to disk; a partial line before it is ended first.

        Raises:
            StorageError: the file cannot be written.
        """
        line = json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        with self._lock:
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self.path.open("a+b", buffering=0) as out:
                    if out.seek(0, os.SEEK_END):
                        out.seek(-1, os.SEEK_END)
                        line = line if out.read(1) == b"\n" else b"\n" + line
                    while line:  # a full disk may take a part without an error
                        line = line[out.write(line) :]
                    os.fsync(out.fileno())
            except OSError as error:
                raise StorageError(f"cannot write {self.path}: {error.strerror}; free space") from error

    def read(self, parse: Callable[[Any], T]) -> list[T]:
        """Return the result of ``parse`` for each line's value; empty without a file.

        Invalid lines, such as the partial last line of a killed process, are skipped with a warning.

        Raises:
            StorageError: the file cannot be read.
        """
        try:
            text = regular_bytes(self.path) if self.path.exists() else b""
        except OSError as error:
            raise StorageError(f"cannot read {self.path}: {error.strerror}") from error
        found = []
        for number, line in enumerate(text.split(b"\n"), start=1):
            if line.strip():
                try:
                    found.append(parse(json.loads(line)))
                except (AttributeError, KeyError, TypeError, ValueError, RecursionError) as error:
                    reason = str(error) or type(error).__name__
                    reason = first_fault(error) if isinstance(error, ValidationError) else reason
                    logger.warning("%s:%d: left out: %s", self.path, number, reason)
        return found
