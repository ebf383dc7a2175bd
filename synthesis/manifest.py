"""What a set of synthesised problems holds: ``manifest.jsonl`` beside ``1.py``, ``2.py`` ..."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaexplore.core.errors import UsageError
from adaexplore.core.files import write_text

logger = logging.getLogger(__name__)

FILE_NAME = "manifest.jsonl"


class Entry(BaseModel):
    """One problem.

    Attributes:
        id: the number in its file's name.
        attempt: which attempt made it; attempts are counted from 1.
        style: how it was asked for.
        model: who wrote it.
        operators: what it calls, by where torch has them.
        hash: SHA-256 of the file.
        graph: the judge's hash of operators, what feeds them, and shapes.
        elements: of inputs, weights and outputs.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    id: int = Field(ge=1)
    attempt: int = Field(ge=1)
    style: str
    model: str
    operators: list[str]
    hash: str
    graph: str
    elements: int


class Manifest:
    """The manifest of one folder; lines that cannot be read are named and kept."""

    def __init__(self, folder: Path) -> None:
        """Read it.

        Raises:
            UsageError: the file is there and cannot be read at all.
        """
        self.path = folder / FILE_NAME
        self._lines = _lines(self.path)
        self.entries = list(self._valid())

    def add(self, entry: Entry) -> None:
        """Write one more line, atomically.

        Raises:
            StorageError: it cannot be written.
        """
        lines = [*self._lines, entry.model_dump_json()]
        write_text(self.path, "\n".join(lines) + "\n")
        self._lines = lines
        self.entries.append(entry)

    def _valid(self) -> Iterator[Entry]:
        ids: set[int] = set()
        for number, line in enumerate(self._lines, start=1):
            if not line.strip():
                continue
            try:
                entry = Entry.model_validate_json(line)
            except ValidationError as error:
                first = error.errors(include_url=False)[0]
                where = ".".join(map(str, first["loc"]))
                logger.warning(
                    "%s:%d: left out: %s", self.path, number, f"{where}: {first['msg']}".removeprefix(": ")
                )
                continue
            if entry.id in ids:
                logger.warning("%s:%d: left out: problem %d is listed before", self.path, number, entry.id)
                continue
            ids.add(entry.id)
            yield entry


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8", "backslashreplace")  # which is no JSON, and can be kept
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}; mend it or choose another folder") from error
    return text.removesuffix("\n").split("\n") if text else []
