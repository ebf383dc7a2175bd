"""What the memory remembers beside its rules: ``<memory>.signatures.json``."""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaexplore.core import files
from adaexplore.core.files import write_text
from skill_memory.rule import Evidence
from skill_memory.signature import Signature

log = logging.getLogger(__name__)

RECURS = 2
"""Independent failures from which a kind is worth a model call."""
MOST_EVIDENCE = 3


class Kind(BaseModel):
    """The failures of one signature: the independent ones, and the evidence of some."""

    model_config = ConfigDict(frozen=True)

    occurrences: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    def with_failure(self, occurrence: str, evidence: Evidence) -> Kind:
        """The same with one failure more; one of a lineage that is known changes nothing."""
        if occurrence in self.occurrences:
            return self
        shortest = sorted([*self.evidence, evidence], key=lambda item: len(item.excerpt))
        return Kind(occurrences=(*self.occurrences, occurrence), evidence=tuple(shortest[:MOST_EVIDENCE]))


class Pending(BaseModel):
    """A rewrite of the memory file that was decided; ``before`` is the digest it replaces."""

    model_config = ConfigDict(frozen=True)

    before: str
    after: str


class Sidecar(BaseModel):
    """State of one memory file.

    Attributes:
        version: format of this file.
        kinds: failures by signature key.
        rules: signature key, or family, to the rule that explains it, None where there is no rule.
        pending: the last rewrite, so that a process killed between the two files loses nothing.
    """

    model_config = ConfigDict(frozen=True)

    version: int = 2
    kinds: dict[str, Kind] = Field(default_factory=dict)
    rules: dict[str, str | None] = Field(default_factory=dict)
    pending: Pending | None = None

    def rule_of(self, key: str) -> str | None:
        """The rule that explains a signature."""
        return self.rules.get(key, self.rules.get(_family(key)))

    def explained(self) -> dict[str, list[str]]:
        """The signatures that each rule explains, those with most failures first."""
        found: dict[str, list[str]] = {}
        for key in sorted(self.kinds, key=lambda key: (-len(self.kinds[key].occurrences), key)):
            rule = self.rule_of(key)
            if rule is not None:
                found.setdefault(rule, []).append(key)
        return found

    def failures_of(self, keys: Iterable[str]) -> tuple[str, ...]:
        """The independent failures of several kinds, each once, in the order in which they came."""
        return tuple(dict.fromkeys(each for key in keys for each in self.kinds[key].occurrences))


@dataclass(frozen=True)
class Group:
    """Kinds of failure that are put to the model together; ``key`` is a signature's or a family."""

    key: str
    members: tuple[str, ...]


def open_groups(state: Sidecar, known: Mapping[str, str]) -> list[Group]:
    """What recurs and has no answer yet, the most frequent first.

    A signature that recurs is a group of its own; those that were met once are put together by
    family, so that ten unknown functions are one mistake.

    Args:
        state: the memory's state.
        known: rules of the memory file by signature key; these need no answer.
    """
    groups, families = [], dict[str, list[str]]()
    for key, kind in state.kinds.items():
        if key in known or key in state.rules:
            continue
        if len(kind.occurrences) >= RECURS:
            groups.append(Group(key, (key,)))
        elif _family(key) not in state.rules:
            families.setdefault(_family(key), []).append(key)
    groups += [Group(family, tuple(keys)) for family, keys in families.items()]
    recurring = [group for group in groups if len(state.failures_of(group.members)) >= RECURS]
    return sorted(recurring, key=lambda group: -len(state.failures_of(group.members)))


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
    with files.locked(memory.with_name(f"{memory.name}.lock"), "choose another general_memory_path"):
        yield


def finish_pending(memory: Path, state: Sidecar) -> str:
    """Do what a killed process had decided and not written; for who holds the lock, before any rewrite.

    Returns:
        The memory file's digest.

    Raises:
        StorageError: it cannot be written.
    """
    found = _file_digest(memory)
    if state.pending is not None and state.pending.before == found:
        write_text(memory, state.pending.after)
        found = _file_digest(memory)
    return found


def digest(data: bytes) -> str:
    """SHA-256 in hexadecimal."""
    return hashlib.sha256(data).hexdigest()


def _file_digest(path: Path) -> str:
    try:
        return digest(path.read_bytes())
    except FileNotFoundError:
        return ""


def _family(key: str) -> str:
    signature = Signature.from_key(key)
    return key if signature is None else f"any of: {signature.family}"
