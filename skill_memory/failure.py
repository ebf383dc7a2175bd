"""One failing step, and what makes two failures independent."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from adaexplore.core.plan import StepKind
from adaexplore.core.verdict import Status, Verdict
from skill_memory.signature import Signature, error_text, is_environment, signature_of

_NOT_FAILURES = frozenset(
    {
        Status.PASSED,
        Status.WRONG_VALUE,
        Status.NONFINITE,
        Status.NONDETERMINISTIC,
        Status.INTEGRITY,
        Status.NOT_CHECKED,
    }
)
_CANDIDATES_OWN_END = "Subprocess failed"
"""How the release words the death of a candidate's process; its other words are the judge's own trouble."""


@dataclass(frozen=True)
class Failure:
    """One failing step of a task.

    Attributes:
        step: its number.
        source: the candidate.
        verdict: what the judge found.
        lineage: the large step that it descends from by small steps.
        line: the line of ``source`` that led to the error, where that is known.
        reference: the problem's source, needed only to compile the candidate again.
    """

    step: int
    source: str
    verdict: Verdict
    lineage: int = 0
    line: int | None = None
    reference: str = ""

    @property
    def signature(self) -> Signature | None:
        """What kind of failure this is, None where it teaches no rule."""
        return signature_of(self.verdict, self.source, self.line)


@dataclass(frozen=True)
class TaskFailures:
    """The failures of one task of one run; ``task`` names both."""

    task: str
    failures: tuple[Failure, ...]

    def occurrence(self, failure: Failure) -> str:
        """Equal for failures of one lineage, which are not independent of each other."""
        return f"{self.task}#{failure.lineage}"


def is_failure(verdict: Verdict) -> bool:
    """Whether a candidate failed otherwise than by wrong values."""
    return verdict.status not in _NOT_FAILURES


def is_infrastructure(verdict: Verdict) -> bool:
    """Whether not the candidate failed but what was around it: a time limit, the service, the disk."""
    if verdict.status is Status.TIMEOUT:
        return not verdict.metadata.get("compilation_error")
    text = error_text(verdict)
    if text:
        return is_environment(verdict)
    error = str(verdict.metadata.get("error") or "")
    return bool(error) and not error.startswith(_CANDIDATES_OWN_END)


def lineages(steps: Iterable[tuple[int, StepKind, int | None]]) -> Mapping[int, int]:
    """The large step at the head of each step's chain of small ones.

    Args:
        steps: number, kind and parent of each step, parents before children.
    """
    heads: dict[int, int] = {}
    for number, kind, parent in steps:
        small = kind is StepKind.SMALL and parent is not None
        heads[number] = heads.get(parent, number) if small and parent is not None else number
    return heads


def in_order(failures: Sequence[Failure]) -> list[Failure]:
    """``failures`` by step."""
    return sorted(failures, key=lambda failure: failure.step)
