"""Public benchmarks: source, pinned revision, and check of a local copy."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, model_validator

from adaexplore.core.errors import StorageError, UsageError
from adaexplore.settings.paths import locate
from adaexplore.settings.yaml_text import read_model

DATASETS = "config/datasets.yaml"

PartState = Literal["ok", "missing", "differs", "not verified"]


class Dataset(BaseModel):
    """One entry of ``config/datasets.yaml``."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    title: str  # a description in one line
    folder: str  # its folder below the folder of all datasets
    repository: str  # address to clone
    revision: str
    archive: str | None = None  # address of a tar archive of that revision
    # address of a data set on a Hugging Face hub; either ``archive`` or ``hub`` is given
    hub: str | None = None
    root: str = ""  # the folder of the repository that holds the parts
    # files or folders below ``root`` to copy, each with its checksum; None if the pinned content is unknown.
    # See ``checksum``
    parts: dict[str, str | None] = Field(min_length=1)
    licence: str
    citation: str  # where it is described
    note: str = ""  # what a user should know

    @model_validator(mode="after")
    def _one_source(self) -> Dataset:
        if (self.archive is None) == (self.hub is None):
            raise ValueError("give one of archive and hub")
        return self

    @property
    def verified(self) -> bool:
        """Whether the checksum of every part is known."""
        return None not in self.parts.values()

    def place(self, folder: Path) -> Path:
        """Return the folder with the parts: the root inside a whole checkout, else ``folder`` itself."""
        return folder / self.root if (folder / self.root).is_dir() else folder


class Catalogue(BaseModel):
    """``config/datasets.yaml``: the data sets, and the day on which their pins were checked."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    checked: date
    datasets: dict[str, Dataset]

    def chosen(self, names: list[str]) -> dict[str, Dataset]:
        """Return the named data sets; all if no name is given.

        Raises:
            UsageError: a name is unknown.
        """
        for name in names:
            if name not in self.datasets:
                raise UsageError(f"unknown data set {name!r}; choose one of {', '.join(self.datasets)}")
        return {name: self.datasets[name] for name in names or self.datasets}


def read_catalogue(path: Path | None = None) -> Catalogue:
    """Read a list of data sets, by default this project's.

    Raises:
        UsageError: it cannot be read.
    """
    return read_model(locate(path or DATASETS), "list of data sets", Catalogue)


def check(dataset: Dataset, folder: Path) -> Iterator[tuple[str, PartState]]:
    """Compare each part of the copy in ``folder`` with the pinned revision.

    Raises:
        StorageError: a file cannot be read.
    """
    place = dataset.place(folder)
    for part, pinned in dataset.parts.items():
        if not (place / part).exists():
            yield part, "missing"
        elif pinned is None:
            yield part, "not verified"
        else:
            yield part, "ok" if checksum(place / part) == pinned else "differs"


def present(dataset: Dataset, folder: Path) -> Mapping[str, bool]:
    """Return which parts exist in ``folder``, without checking their content."""
    place = dataset.place(folder)
    return {part: (place / part).exists() for part in dataset.parts}


def checksum(path: Path) -> str:
    """Return the SHA-256 of a file, or of the list of a folder's files as ``sha256sum`` prints it.

    docs/benchmarks.md has an equivalent command. Bytecode is left out.

    Raises:
        StorageError: a file cannot be read.
    """
    try:
        if not path.is_dir():
            with path.open("rb") as file:
                return hashlib.file_digest(file, "sha256").hexdigest()
        names = (
            Path(folder, name).relative_to(path).as_posix()
            for folder, _, files in os.walk(path)
            for name in files
            if Path(folder).name != "__pycache__"
        )
        lines = [f"{checksum(path / name)}  {name}\n" for name in sorted(names, key=os.fsencode)]
    except OSError as error:
        raise StorageError(f"cannot read {error.filename}: {error.strerror}") from error
    return hashlib.sha256("".join(lines).encode("utf-8", "surrogateescape")).hexdigest()
