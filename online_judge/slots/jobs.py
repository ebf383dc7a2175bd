"""A job as the gateway submits it to a slot, and its result."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import (
    CompileReport,
    EvaluationRequest,
    JobKind,
    ProblemReport,
    ProblemRequest,
    ProfileReport,
)

Finding = Verdict | ProblemReport | CompileReport | ProfileReport


@dataclass(frozen=True)
class EvaluationJob:
    """One job.

    Attributes:
        kind: what is asked.
        request: the problem, and the candidate where there is one.
        recorded_ms: a recorded reference time to use instead of a measured one; None for none.
    """

    kind: JobKind
    request: EvaluationRequest | ProblemRequest
    recorded_ms: float | None = None
