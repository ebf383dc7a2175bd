"""Attempts at problems, written down as they go, so that nothing is asked or counted twice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.files import locked
from adaexplore.core.json_lines import JsonLines

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
            StorageError: it cannot be read.
        """
        self.path = folder / FOLDER / FILE_NAME
        self.replies: dict[int, Reply] = {}
        self.rejected: dict[int, str] = {}
        self._lines = JsonLines(self.path)
        self._lines.read(self._take)

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
        self._lines.append({"attempt": attempt, "model": reply.model, "reply": reply.text})
        self.replies[attempt] = reply

    def reject(self, attempt: int, reason: str, detail: str) -> None:
        """An attempt came to nothing."""
        self._lines.append({"attempt": attempt, "rejected": reason, "detail": detail})
        self.rejected[attempt] = reason

    def counts(self) -> dict[str, int]:
        """Rejected attempts by reason, the most frequent first."""
        return dict(Counter(self.rejected.values()).most_common())

    def _take(self, data: Any) -> None:
        if "rejected" in data:
            self.rejected[int(data["attempt"])] = str(data["rejected"])
        else:
            self.replies[int(data["attempt"])] = Reply(str(data["reply"]), str(data["model"]))
