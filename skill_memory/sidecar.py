"""What the memory remembers beside its rules: ``<memory>.signatures.json``."""

from __future__ import annotations

import fcntl
import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaexplore.core.errors import StorageError
from adaexplore.core.files import write_text

log = logging.getLogger(__name__)


class Pending(BaseModel):
    """A rewrite of the memory file that was decided; ``before`` is the digest it replaces."""

    model_config = ConfigDict(frozen=True)

    before: str
    after: str


class Sidecar(BaseModel):
    """State of one memory file.

    Attributes:
        version: format of this file.
        rules: signature key to the rule that explains it, None where there is no rule.
        counted: ``<run>/<task>`` to the signature keys already counted for it.
        pending: the last rewrite, so that a process killed between the two files loses nothing.
    """

    model_config = ConfigDict(frozen=True)

    version: int = 1
    rules: dict[str, str | None] = Field(default_factory=dict)
    counted: dict[str, list[str]] = Field(default_factory=dict)
    pending: Pending | None = None


def sidecar_path(memory: Path) -> Path:
    """Where the state of ``memory`` stands."""
    return memory.with_name(f"{memory.name}.signatures.json")


def read_sidecar(memory: Path) -> Sidecar:
    """The state of ``memory``: empty where there is none; a damaged one is named and taken as empty."""
    path = sidecar_path(memory)
    try:
        return Sidecar.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Sidecar()
    except (OSError, ValidationError, json.JSONDecodeError) as error:
        log.warning("%s cannot be read (%s); starting without it", path, str(error).splitlines()[0])
        return Sidecar()


def write_sidecar(memory: Path, state: Sidecar) -> None:
    """Write the state of ``memory`` atomically.

    Raises:
        StorageError: it cannot be written.
    """
    write_text(sidecar_path(memory), state.model_dump_json(indent=1) + "\n")


@contextmanager
def locked(memory: Path) -> Iterator[None]:
    """Hold ``<memory>.lock`` against other threads and processes.

    Raises:
        StorageError: the lock file cannot be made.
    """
    path = memory.with_name(f"{memory.name}.lock")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle = path.open("a")
    except OSError as error:
        reason = error.strerror or error
        raise StorageError(f"cannot lock {path}: {reason}; choose another general_memory_path") from error
    with handle:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
