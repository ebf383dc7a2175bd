"""The manifest of a synthesised set: ``manifest.jsonl`` beside ``1.py``, ``2.py`` ..."""

from pathlib import Path
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from adaexplore.core.files.json_lines import JsonLines

FILE_NAME = "manifest.jsonl"


class Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")

    id: int = Field(ge=1)  # the number in its file's name
    attempt: int = Field(ge=1)  # number of the attempt that made it, from 1
    style: str
    model: str
    operators: list[str]  # the operators that it calls, by their path in torch
    hash: str  # SHA-256 of the file
    graph: str  # the judge's hash of operators, data flow and shapes
    elements: int  # number of elements of inputs, weights and outputs


class Manifest:
    """The manifest of one folder; unreadable lines cause a warning and are kept."""

    def __init__(self, folder: Path) -> None:
        """Read the manifest.

        Raises:
            StorageError: the file exists but cannot be read.
        """
        self.entries: list[Entry] = []
        self._lines = JsonLines(folder / FILE_NAME)
        self._lines.read(self._take)

    def add(self, entry: Entry) -> None:
        """Add a line.

        Raises:
            StorageError: the file cannot be written.
        """
        self._lines.append(entry.model_dump())
        self.entries.append(entry)

    def _take(self, data: Any) -> None:
        entry = Entry.model_validate(data)
        if any(known.id == entry.id for known in self.entries):
            raise ValueError(f"problem {entry.id} is listed before")
        self.entries.append(entry)
