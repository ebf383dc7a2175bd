"""Flags of a verdict."""

from __future__ import annotations

from dataclasses import dataclass

REJECT = "reject"
SUSPECT = "suspect"
DEGENERATE = "degenerate_problem"
"""The flag of a problem that trivial answers pass."""
BASELINE_UNCONFIRMED = "baseline_unconfirmed"
"""The flag of a kernel whose reference could not be timed without a candidate."""


@dataclass(frozen=True)
class Flag:
    """A finding on a kernel: ``severity`` is ``reject``, ``suspect`` or ``note``, ``evidence`` one line."""

    id: str
    severity: str
    evidence: str


@dataclass(frozen=True)
class ProblemFlag:
    """A finding about a problem, which says nothing about the kernel; ``evidence`` is one line."""

    id: str
    evidence: str
