"""Outcomes of the model's replies, and the evaluations that checks saved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Annotated

from pydantic import PlainSerializer

from adaexplore.core.draft import AS_BEFORE, DraftOutcome, RepairReason
from adaexplore.records.step_reader import StepSummary

_STOPPED = {DraftOutcome.LINT_STOPPED: "lint", DraftOutcome.GATE_STOPPED: "gate"}
_SAVING_REPAIRS = {
    RepairReason.UNCHANGED: "unchanged",
    RepairReason.DUPLICATE: "duplicate",
    RepairReason.LINT: "lint",
    RepairReason.GATE: "gate",
}


_WORDS = {
    RepairReason.EDIT.value: "with edits that do not fit",
    RepairReason.FORMAT.value: "without code",
    RepairReason.UNCHANGED.value: "without a change",
    RepairReason.DUPLICATE.value: "equal to a judged kernel",
    RepairReason.LINT.value: "with a mistake that a lint found",
    RepairReason.GATE.value: "with a compile error",
}
"""Reasons in words that follow a number of kernels or replies."""


def ranked(numbers: Mapping[str, int]) -> dict[str, int]:
    """Sort counts: the most frequent first, ties by name."""
    return dict(sorted(numbers.items(), key=lambda item: (-item[1], item[0])))


Counts = Annotated[Counter[str], PlainSerializer(ranked)]


@dataclass(frozen=True)
class Savings:
    """Counts over steps."""

    outcomes: Counts = field(default_factory=Counter)  # number of steps by outcome of the model's replies
    evaluations: int = 0  # number of requested verdicts, including second timings
    # number of sources that were not sent to the judge, by reason: ``duplicate`` (an equal program was judged
    # before), ``unchanged`` (of a small step), ``lint`` and ``gate`` (certain to fail). A source that was
    # sent back to the model for that reason counts too
    saved: Counts = field(default_factory=Counter)
    repairs: Counts = field(default_factory=Counter)  # number of replies sent back within a step, by reason

    def __add__(self, other: Savings) -> Savings:
        return Savings(
            self.outcomes + other.outcomes,
            self.evaluations + other.evaluations,
            self.saved + other.saved,
            self.repairs + other.repairs,
        )


def count_savings(steps: Iterable[StepSummary]) -> Savings:
    """Count outcomes and savings of ``steps``, none of which is the dummy root."""
    outcomes: Counter[str] = Counter()
    saved: Counter[str] = Counter()
    repairs: Counter[str] = Counter()
    evaluations = 0
    for step in steps:
        outcomes[step.outcome.value] += 1
        repairs += step.repairs
        evaluations += step.evaluated + step.retimed
        if step.outcome in _STOPPED:
            saved[_STOPPED[step.outcome]] += 1
        elif step.verdict is not None and not step.evaluated:
            saved["unchanged" if step.outcome in AS_BEFORE else "duplicate"] += 1
    for reason, name in _SAVING_REPAIRS.items():
        saved[name] += repairs[reason.value]
    return Savings(outcomes, evaluations, +saved, repairs)


def savings_line(savings: Savings) -> str:
    """Say in one line how many kernels were judged, which were not, and which replies were sent back."""
    line = f"Judge evaluations: {savings.evaluations}"
    if savings.saved:
        line += f"; not sent to the judge: {savings.saved.total()} ({_in_words(savings.saved)})"
    if savings.repairs:
        line += f"; sent back to the model: {savings.repairs.total()} ({_in_words(savings.repairs)})"
    return line


def _in_words(numbers: Mapping[str, int]) -> str:
    return counts({_WORDS[name]: number for name, number in numbers.items()})


def counts(numbers: Mapping[str, int]) -> str:
    """Format counts in the order of :func:`ranked`; ``-`` without any."""
    return ", ".join(f"{number} {name}" for name, number in ranked(numbers).items()) or "-"
