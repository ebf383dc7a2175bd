"""Failing steps, and the independence of failures."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from adaexplore.core.judging.status import Status, StatusKind
from adaexplore.core.plan import StepKind
from adaexplore.core.verdict import Verdict
from skill_memory.failures.signature import Signature, error_text, is_environment, signature_of

_CANDIDATES_OWN_END = "Subprocess failed"
"""The release's words for the death of a candidate's process; other words mean failures of its judge."""


@dataclass(frozen=True)
class Failure:
    step: int
    source: str  # the candidate
    verdict: Verdict
    lineage: int = 0  # the large step from which it descends by small steps
    line: int | None = None  # the offending line of ``source``, if known
    reference: str = ""  # the problem's source; only needed to compile the candidate again

    @property
    def signature(self) -> Signature | None:
        """The kind of failure; None if it teaches no rule."""
        return signature_of(self.verdict, self.source, self.line)


@dataclass(frozen=True)
class TaskFailures:
    """The failures of one task of one run; ``task`` names both."""

    task: str
    failures: tuple[Failure, ...]

    def occurrence(self, failure: Failure) -> str:
        """Return a key that is equal for failures of one lineage, which are not independent."""
        return f"{self.task}#{failure.lineage}"


def is_failure(verdict: Verdict) -> bool:
    """Return whether a candidate failed for a reason other than wrong values."""
    match verdict.status.row.kind:
        case StatusKind.LOAD | StatusKind.BUILD | StatusKind.RUN | StatusKind.FORM:
            return True
        case StatusKind.PASSED | StatusKind.VALUES | StatusKind.REJECTED | StatusKind.UNKNOWN:
            return False


def is_infrastructure(verdict: Verdict) -> bool:
    """Return whether the infrastructure failed, not the candidate: a time limit, the service, the disk."""
    if verdict.status is Status.TIMEOUT:
        return not verdict.failure.compilation_error
    text = error_text(verdict)
    if text:
        return is_environment(verdict)
    error = verdict.failure.error
    return bool(error) and not error.startswith(_CANDIDATES_OWN_END)


def lineages(steps: Iterable[tuple[int, StepKind, int | None]]) -> Mapping[int, int]:
    """Return the large step at the start of each step's chain of small steps.

    Args:
        steps: number, kind and parent of each step, parents before children.
    """
    heads: dict[int, int] = {}
    for number, kind, parent in steps:
        small = kind is StepKind.SMALL and parent is not None
        heads[number] = heads.get(parent, number) if small and parent is not None else number
    return heads
