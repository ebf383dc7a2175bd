"""Types of a check: its flags, the facts that it reads, and where these are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, Literal, NamedTuple, TypeVar

from online_judge.checks.facts.endings import Ending
from online_judge.checks.facts.findings import Fact

Fact_ = TypeVar("Fact_", bound=Fact)


class Severity(StrEnum):
    """Effect of a flag on a verdict: only ``reject`` makes it incorrect."""

    REJECT = "reject"
    SUSPECT = "suspect"
    NOTE = "note"


class Observation(Fact):
    """A fact that an evaluator records about a candidate besides its outputs."""


@dataclass(frozen=True)
class FlagKind:
    """A flag that clients see, and its row in docs/integrity.md."""

    id: str
    severity: Severity | None  # None of a problem's flag, which says nothing about the kernel
    property_of: Literal["kernel", "measurement", "problem"]
    evidence: str  # what a flag's evidence states
    advice: str  # what a reader of the verdict should do

    def found(self, evidence: str | Ending) -> Found:
        return Found(self, evidence)


class Found(NamedTuple):
    """One flag; ``evidence`` is one line with figures, or an ending, whose feedback has that line."""

    flag: FlagKind
    evidence: str | Ending


@dataclass(frozen=True)
class Check(Generic[Fact_]):
    """One question about a candidate or its problem.

    Attributes:
        flags: in the order of their rows in docs/integrity.md.
        facts: the types of facts that ``find`` reads; other checks may read them too.
        find: returns the flags of a fact. The feedback of a rejected candidate names their ids and evidence.
        measured_by: dotted names of the functions that measure the facts; empty if nothing is measured.
    """

    flags: tuple[FlagKind, ...]
    facts: tuple[type[Fact_], ...]
    find: Callable[[Fact_], Iterator[Found]]
    measured_by: tuple[str, ...] = ()
