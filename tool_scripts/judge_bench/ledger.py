"""What a part has measured so far: one JSON line a finished unit, so that a killed part goes on."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any, TypeVar

from adaexplore.core.errors import UsageError
from adaexplore.core.json_lines import JsonLines
from tool_scripts.judge_bench.records import KINDS, Record, Session

R = TypeVar("R", bound=Record)


class Ledger:
    """The records of one part on one device; safe to use from several threads."""

    def __init__(self, folder: Path, device: str, part: str) -> None:
        """Read what is there; a line that a killed process left torn is named, and its unit measured again.

        Raises:
            UsageError: a line is no record.
            StorageError: the file cannot be read.
        """
        self.part = part
        self.device = device
        self.path = folder / f"{device}-{part}.jsonl"
        self._lock = threading.Lock()
        self._lines = JsonLines(self.path)
        self._records = self._lines.read(self._record)

    def of(self, kind: type[R]) -> list[R]:
        """The records of one kind, oldest first."""
        with self._lock:
            return [record for record in self._records if isinstance(record, kind)]

    def add(self, record: Record) -> None:
        """Keep a record.

        Raises:
            StorageError: it cannot be written.
        """
        self._lines.append({"type": type(record).__name__, **record.model_dump(mode="json")})
        with self._lock:
            self._records.append(record)

    def open_session(self, session: Session) -> None:
        """Note with what is measured from now on.

        Raises:
            UsageError: earlier records come from other hardware or versions.
        """
        for earlier in self.of(Session)[:1]:
            ours, theirs = session.basis(), earlier.basis()
            changed = [name for name in ours if ours[name] != theirs[name]]
            if changed:
                raise UsageError(
                    f"{self.path} has measurements with another {', '.join(changed)}; choose another --out"
                )
        self.add(session)

    def _record(self, line: Any) -> Record:
        try:
            return KINDS[line.pop("type")].model_validate(line)
        except (AttributeError, KeyError, TypeError, ValueError) as error:
            raise UsageError(
                f"{self.path} is damaged ({type(error).__name__}); choose another --out"
            ) from error
