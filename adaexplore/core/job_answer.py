"""The answer about a job of protocol v2, whose verdict is typed on both sides of the wire."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import BaseModel, PlainSerializer, PlainValidator

from adaexplore.core.metrics import JobVerdict, from_metrics, to_metrics
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport, JobKind, JobState, ProblemReport, ProfileReport


def _read(told: object) -> Verdict:
    if isinstance(told, Verdict):
        return told
    try:
        return from_metrics(told if isinstance(told, dict) else {})
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a verdict ({type(error).__name__}: {error})") from error


def _write(verdict: Verdict) -> dict[str, Any]:
    return {"status": verdict.status.value, **to_metrics(verdict)}


_Verdict = Annotated[Verdict, PlainValidator(_read), PlainSerializer(_write, return_type=JobVerdict)]


class JobAnswer(BaseModel):
    """Answer of ``GET`` and ``DELETE /v2/jobs/{id}``.

    ``verdict`` is present if a candidate is done, ``report`` if a job of another kind is done,
    ``error`` if the job failed; ``cached`` means that the verdict was already known. ``reason`` says why no
    device can take a queued job now.
    """

    id: str
    kind: JobKind
    state: JobState
    position: int = 0
    verdict: _Verdict | None = None
    report: ProblemReport | CompileReport | ProfileReport | None = None
    error: str | None = None
    reason: str = ""
    cached: bool = False
    queue_time: float = 0.0
    execution_time: float = 0.0
