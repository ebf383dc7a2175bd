"""Attempts at problems, written down as they go, so that nothing is asked or counted twice."""

from __future__ import annotations

import json
import logging
import os
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.errors import StorageError
from adaexplore.core.files import locked

logger = logging.getLogger(__name__)

FOLDER = ".synth"
FILE_NAME = "attempts.jsonl"


@dataclass(frozen=True)
class Reply:
    """What was answered to an attempt, and by whom."""

    text: str
    model: str


class Journal:
    """``.synth/attempts.jsonl`` of one set: a line for each reply and for each rejection.

    Safe to use from several threads; one process at a time holds it.
    """

    def __init__(self, folder: Path) -> None:
        """Read it; a line that cannot be read, such as the torn last one of a killed process, is named.

        Raises:
            StorageError: the folder cannot be made or read.
        """
        self.path = folder / FOLDER / FILE_NAME
        self.replies: dict[int, Reply] = {}
        self.rejected: dict[int, str] = {}
        self._lock = threading.Lock()
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            text = self.path.read_bytes() if self.path.exists() else b""
        except OSError as error:
            raise StorageError(f"cannot use {self.path}: {error.strerror}; choose another folder") from error
        self._torn = bool(text) and not text.endswith(b"\n")
        for number, line in enumerate(text.split(b"\n"), start=1):
            if line.strip():
                self._take(number, line)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the set for one process.

        Raises:
            UsageError: another one holds it.
            StorageError: the lock file cannot be made.
        """
        busy = f"another process is writing to {self.path.parent.parent}; wait for it"
        with locked(self.path.with_name("lock"), "choose another folder", busy):
            yield

    def reply(self, attempt: int, reply: Reply) -> None:
        """An attempt was answered."""
        self._append({"attempt": attempt, "model": reply.model, "reply": reply.text})
        self.replies[attempt] = reply

    def reject(self, attempt: int, reason: str, detail: str) -> None:
        """An attempt came to nothing."""
        self._append({"attempt": attempt, "rejected": reason, "detail": detail})
        self.rejected[attempt] = reason

    def counts(self) -> dict[str, int]:
        """Rejected attempts by reason, the most frequent first."""
        return dict(Counter(self.rejected.values()).most_common())

    def _take(self, number: int, line: bytes) -> None:
        try:
            data = json.loads(line)
            if "rejected" in data:
                self.rejected[int(data["attempt"])] = str(data["rejected"])
            else:
                self.replies[int(data["attempt"])] = Reply(str(data["reply"]), str(data["model"]))
        except (ValueError, KeyError, TypeError) as error:
            logger.warning("%s:%d: left out: %s", self.path, number, str(error) or type(error).__name__)

    def _append(self, data: dict[str, Any]) -> None:
        line = json.dumps(data, ensure_ascii=False).encode("utf-8", "surrogatepass") + b"\n"
        with self._lock:
            rest = b"\n" + line if self._torn else line
            self._torn = True  # until the whole line stands: a full disk takes a part without an error
            try:
                with self.path.open("ab", buffering=0) as out:
                    while rest:
                        rest = rest[out.write(rest) :]
                    os.fsync(out.fileno())
                self._torn = False
            except OSError as error:
                raise StorageError(f"cannot write {self.path}: {error.strerror}; free space") from error
