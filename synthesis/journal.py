"""Journal of attempts at problems, so that nothing is requested or counted twice."""

from collections import Counter
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.core.files.atomic import locked
from adaexplore.core.files.json_lines import JsonLines

FOLDER = ".synth"
FILE_NAME = "attempts.jsonl"


@dataclass(frozen=True)
class Reply:
    """The reply to an attempt, and the model that gave it."""

    text: str
    model: str


class Journal:
    """``.synth/attempts.jsonl`` of one set: one line for each reply and for each rejection.

    Thread-safe; one process at a time holds it.
    """

    def __init__(self, folder: Path) -> None:
        """Read the journal; warn about unreadable lines, such as the partial last line of a killed process.

        Raises:
            StorageError: the file cannot be read.
        """
        self.path = folder / FOLDER / FILE_NAME
        self.replies: dict[int, Reply] = {}
        self.rejected: dict[int, str] = {}
        self._lines = JsonLines(self.path)
        self._lines.read(self._take)

    def held(self) -> AbstractContextManager[None]:
        """Lock the set for one process.

        Raises:
            UsageError: another process holds the lock.
            StorageError: the lock file cannot be made.
        """
        busy = f"another process is writing to {self.path.parent.parent}; wait for it"
        return locked(self.path.with_name("lock"), "choose another folder", busy)

    def reply(self, attempt: int, reply: Reply) -> None:
        self._lines.append({"attempt": attempt, "model": reply.model, "reply": reply.text})
        self.replies[attempt] = reply

    def reject(self, attempt: int, reason: str, detail: str) -> None:
        self._lines.append({"attempt": attempt, "rejected": reason, "detail": detail})
        self.rejected[attempt] = reason

    def counts(self) -> dict[str, int]:
        """Count rejected attempts by reason, the most frequent first."""
        return dict(Counter(self.rejected.values()).most_common())

    def _take(self, data: Any) -> None:
        if "rejected" in data:
            self.rejected[int(data["attempt"])] = str(data["rejected"])
        else:
            self.replies[int(data["attempt"])] = Reply(str(data["reply"]), str(data["model"]))
