"""The manifest of a synthesised set: ``manifest.jsonl`` beside ``1.py``, ``2.py`` ..."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaexplore.core.errors import UsageError
from adaexplore.core.files.atomic import write_text
from adaexplore.core.files.inputs import first_fault

logger = logging.getLogger(__name__)

FILE_NAME = "manifest.jsonl"


class Entry(BaseModel):
    """One problem.

    Attributes:
        id: the number in its file's name.
        attempt: number of the attempt that made it, from 1.
        operators: the operators that it calls, by their path in torch.
        hash: SHA-256 of the file.
        graph: the judge's hash of operators, data flow and shapes.
        elements: number of elements of inputs, weights and outputs.
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
    """The manifest of one folder; unreadable lines cause a warning and are kept."""

    def __init__(self, folder: Path) -> None:
        """Read the manifest.

        Raises:
            UsageError: the file exists but cannot be read.
        """
        self.path = folder / FILE_NAME
        self._lines = _lines(self.path)
        self.entries = list(self._valid())

    def add(self, entry: Entry) -> None:
        """Add a line, atomically.

        Raises:
            StorageError: the file cannot be written.
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
                logger.warning("%s:%d: left out: %s", self.path, number, first_fault(error))
                continue
            if entry.id in ids:
                logger.warning("%s:%d: left out: problem %d is listed before", self.path, number, entry.id)
                continue
            ids.add(entry.id)
            yield entry


def _lines(path: Path) -> list[str]:
    try:
        text = path.read_bytes().decode("utf-8", "backslashreplace")  # which is not JSON, and can be kept
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error}; correct it or choose another folder") from error
    return text.removesuffix("\n").split("\n") if text else []
