"""Types of a check: its flags, the facts that it reads, and where these are measured."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import ClassVar, Generic, NamedTuple, TypeVar

from online_judge.checks.facts.endings import Ending
from online_judge.checks.facts.findings import Fact

ReadFact = TypeVar("ReadFact", bound="CheckFact")


class Severity(StrEnum):
    """Effect of a flag on a verdict: only ``reject`` makes it incorrect."""

    REJECT = "reject"
    SUSPECT = "suspect"
    NOTE = "note"


class CheckFact(Fact):
    """A fact that checks read.

    ``MEASURED_BY`` names the function of this package that finds it; empty if it is no measurement.
    """

    MEASURED_BY: ClassVar[str] = ""


class Observation(CheckFact):
    """A fact that an evaluator records about a candidate besides its outputs."""


@dataclass(frozen=True)
class FlagKind:
    """A flag that clients see, and its row in docs/integrity.md."""

    id: str
    severity: Severity | None  # None of a problem's flag, which says nothing about the kernel
    evidence: str  # what a flag's evidence states
    advice: str  # what a reader of the verdict should do
    of_measurement: bool = False  # a property of the measurement, not of the kernel

    def found(self, evidence: str | Ending) -> Found:
        return Found(self, evidence)


class Found(NamedTuple):
    """One flag; ``evidence`` is one line with figures, or an ending, whose feedback has that line."""

    flag: FlagKind
    evidence: str | Ending


@dataclass(frozen=True)
class Check(Generic[ReadFact]):
    """One question about a candidate or its problem."""

    flags: tuple[FlagKind, ...]  # in the order of their rows in docs/integrity.md
    # the types of facts that ``find`` reads; other checks may read them too
    facts: tuple[type[ReadFact], ...]
    # returns the flags of a fact. The feedback of a rejected candidate names their ids and evidence
    find: Callable[[ReadFact], Iterator[Found]]
