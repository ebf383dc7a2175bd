"""The state of a memory beside its rules: ``<memory>.signatures.json``.

Functions raise StorageError if a file cannot be written.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from adaexplore.core.files import atomic as files
from adaexplore.core.files.atomic import write_text
from skill_memory.failures.signature import Signature
from skill_memory.rule import Evidence

log = logging.getLogger(__name__)

RECURS = 2
"""Minimum independent failures of a kind for a model request."""
MOST_EVIDENCE = 3


class Kind(BaseModel):
    """The independent failures of one signature, with evidence of some."""

    model_config = ConfigDict(frozen=True)

    occurrences: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()

    def with_failure(self, occurrence: str, evidence: Evidence) -> Kind:
        """Return a copy with one more failure; one of a known lineage changes nothing."""
        if occurrence in self.occurrences:
            return self
        shortest = sorted([*self.evidence, evidence], key=lambda item: len(item.excerpt))
        return Kind(occurrences=(*self.occurrences, occurrence), evidence=tuple(shortest[:MOST_EVIDENCE]))


class Pending(BaseModel):
    """A pending rewrite of the memory file; ``before`` is the digest of the file that it replaces."""

    model_config = ConfigDict(frozen=True)

    before: str
    after: str


class Sidecar(BaseModel):
    """State of one memory file."""

    model_config = ConfigDict(frozen=True)

    version: int = 2
    kinds: dict[str, Kind] = Field(default_factory=dict)  # failures by signature key
    # for each signature key or family the rule that explains it; None for no rule
    rules: dict[str, str | None] = Field(default_factory=dict)
    # the last rewrite, so that a process killed between the two writes loses nothing
    pending: Pending | None = None

    def rule_of(self, key: str, known: Mapping[str, str]) -> str | None:
        """Return the rule that explains a signature; ``known`` are the memory file's rules by key."""
        for rules, name in ((self.rules, key), (known, key), (self.rules, _family(key))):
            if name in rules:
                return rules[name]
        return None

    def explained(self, known: Mapping[str, str]) -> dict[str, list[str]]:
        """Return the signatures that each rule explains, those with most failures first."""
        found: dict[str, list[str]] = {}
        for key in sorted(self.kinds, key=lambda key: (-len(self.kinds[key].occurrences), key)):
            rule = self.rule_of(key, known)
            if rule is not None:
                found.setdefault(rule, []).append(key)
        return found

    def failures_of(self, keys: Iterable[str]) -> tuple[str, ...]:
        """Return the independent failures of several kinds, each once, in order of arrival."""
        return tuple(dict.fromkeys(each for key in keys for each in self.kinds[key].occurrences))


@dataclass(frozen=True)
class Group:
    """Kinds of failure that one model request covers; ``key`` is a signature's key or a family."""

    key: str
    members: tuple[str, ...]


def open_groups(state: Sidecar, known: Mapping[str, str]) -> list[Group]:
    """Return the recurring failures without an answer, the most frequent first.

    A recurring signature is its own group. Signatures with one failure are grouped by family, so
    that ten unknown functions are one mistake.

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
    return memory.with_name(f"{memory.name}.signatures.json")


def read_sidecar(memory: Path) -> Sidecar:
    """Read the state of ``memory``: empty without a file; warn about a damaged one and treat it as empty."""
    path = sidecar_path(memory)
    try:
        return Sidecar.model_validate_json(path.read_bytes())
    except FileNotFoundError:
        return Sidecar()
    except (OSError, ValidationError, json.JSONDecodeError) as error:
        log.warning("%s cannot be read (%s); continuing without it", path, str(error).splitlines()[0])
        return Sidecar()


def write_sidecar(memory: Path, state: Sidecar) -> None:
    write_text(sidecar_path(memory), state.model_dump_json(indent=1) + "\n")


def locked(memory: Path) -> AbstractContextManager[None]:
    """Hold ``<memory>.lock`` against other threads and processes."""
    return files.locked(memory.with_name(f"{memory.name}.lock"), "choose another general_memory_path")


def finish_pending(memory: Path, state: Sidecar) -> str:
    """Finish the pending rewrite of a killed process; call it with the lock held, before any rewrite.

    Returns:
        The memory file's digest.
    """
    found = _file_digest(memory)
    if state.pending is not None and state.pending.before == found:
        write_text(memory, state.pending.after)
        found = _file_digest(memory)
    return found


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _file_digest(path: Path) -> str:
    try:
        return digest(path.read_bytes())
    except FileNotFoundError:
        return ""


def _family(key: str) -> str:
    signature = Signature.from_key(key)
    return key if signature is None else f"any of: {signature.family}"
