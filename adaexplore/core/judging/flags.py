"""Flags of a verdict, read from its metadata, old or new."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

REJECT = "reject"
SUSPECT = "suspect"
DEGENERATE = "degenerate_problem"
"""The flag of a problem that trivial answers pass."""
BASELINE_UNCONFIRMED = "baseline_unconfirmed"
"""The flag of a kernel whose reference could not be timed without a candidate."""
_PROBLEM_FLAGS_OF_BEFORE = (DEGENERATE, "constant_inputs")


class Flag(NamedTuple):
    """A finding on a kernel: ``severity`` is ``reject``, ``suspect`` or ``note``, ``evidence`` one line."""

    id: str
    severity: str
    evidence: str


class ProblemFlag(NamedTuple):
    """A finding about a problem, which says nothing about the kernel; ``evidence`` is one line."""

    id: str
    evidence: str


class Flags(NamedTuple):
    """All flags of a verdict; those of the kernel have the gravest first."""

    kernel: tuple[Flag, ...] = ()
    problem: tuple[ProblemFlag, ...] = ()


def read_flags(metadata: Mapping[str, Any]) -> Flags:
    """Return the flags in a verdict's metadata.

    Older judges list flags of the problem in ``integrity``, newer ones in ``problem_flags``. A kernel's
    flag without evidence counts as suspect.
    """
    ids, told = _ids(metadata, "integrity"), _evidence(metadata, "integrity_evidence")
    kernel = tuple(
        Flag(name, str(told.get(name, {}).get("severity", SUSPECT)), _text(told, name))
        for name in ids
        if name not in _PROBLEM_FLAGS_OF_BEFORE
    )
    problem = {name: _text(told, name) for name in ids if name in _PROBLEM_FLAGS_OF_BEFORE}
    told = _evidence(metadata, "problem_flags_evidence")
    problem |= {name: _text(told, name) for name in _ids(metadata, "problem_flags")}
    return Flags(kernel, tuple(ProblemFlag(*flag) for flag in problem.items()))


def _ids(metadata: Mapping[str, Any], key: str) -> list[str]:
    found = metadata.get(key)
    return [str(name) for name in found] if isinstance(found, list | tuple) else []


def _evidence(metadata: Mapping[str, Any], key: str) -> dict[str, dict[str, Any]]:
    found = metadata.get(key)
    entries = found if isinstance(found, list | tuple) else ()
    return {str(entry.get("id")): entry for entry in entries if isinstance(entry, dict)}


def _text(told: Mapping[str, Mapping[str, Any]], name: str) -> str:
    return str(told.get(name, {}).get("evidence", ""))
