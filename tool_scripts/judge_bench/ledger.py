"""What a part has measured so far: one JSON line a finished unit, so that a killed part goes on."""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import TypeVar

from pydantic import ValidationError

from adaexplore.core.errors import StorageError, UsageError
from tool_scripts.judge_bench.records import KINDS, Record, Session

R = TypeVar("R", bound=Record)


class Ledger:
    """The records of one part on one device; safe to use from several threads."""

    def __init__(self, folder: Path, device: str, part: str) -> None:
        """Read what is there.

        Raises:
            UsageError: a line other than the last one is damaged.
            StorageError: the folder cannot be made.
        """
        self.part = part
        self.device = device
        self.path = folder / f"{device}-{part}.jsonl"
        self._lock = threading.Lock()
        try:
            folder.mkdir(parents=True, exist_ok=True)
            text = self.path.read_text(encoding="utf-8") if self.path.exists() else ""
            whole, _, torn = text.rpartition("\n")
            if torn:  # killed while writing: that unit is measured again
                self.path.write_text(whole + "\n" if whole else "", encoding="utf-8")
        except OSError as error:
            raise StorageError(f"cannot use {folder}: {error.strerror}; choose another --out") from error
        self._records = [self._parsed(line) for line in whole.splitlines()]

    def of(self, kind: type[R]) -> list[R]:
        """The records of one kind, oldest first."""
        with self._lock:
            return [record for record in self._records if isinstance(record, kind)]

    def add(self, record: Record) -> None:
        """Keep a record."""
        line = json.dumps({"type": type(record).__name__, **record.model_dump(mode="json")})
        with self._lock:
            try:
                with self.path.open("a", encoding="utf-8") as out:
                    out.write(line + "\n")
            except OSError as error:
                raise StorageError(f"cannot write {self.path}: {error.strerror}") from error
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

    def _parsed(self, line: str) -> Record:
        try:
            fields = json.loads(line)
            return KINDS[fields.pop("type")].model_validate(fields)
        except (ValueError, KeyError, AttributeError, ValidationError) as error:
            raise UsageError(
                f"{self.path} is damaged ({type(error).__name__}); choose another --out"
            ) from error
