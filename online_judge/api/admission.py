"""Requests that are answered at once, before anything of them is queued, parsed or created."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import (
    CompileReport,
    EvaluationRequest,
    JobKind,
    ProblemReport,
    ProblemRequest,
    ProfileReport,
)
from online_judge.queue.board import REFERENCE_FAILED
from online_judge.queue.entries import Answered
from online_judge.queue.metrics import Metrics
from online_judge.settings import Settings
from online_judge.slots.devices import Machine

_NEXT = "Make the source shorter; compute tables of numbers instead of writing them out."
_ERROR_NAME = "SourceTooLarge"


@dataclass(frozen=True)
class Admission:
    """Looks at the size of the sources of a request.

    Parsing and importing a source takes time on a slot that other clients wait for: on one core about 4 s
    for 256 KiB of short statements and 17 s for 1 MiB.
    """

    settings: Settings
    machine: Machine
    metrics: Metrics

    def answer(self, kind: JobKind, request: EvaluationRequest | ProblemRequest) -> Answered | None:
        """Return the answer to a request with a source above ``MAX_SOURCE_BYTES``; None where all fit."""
        too_large = self._too_large("reference", request.original_model_src)
        if too_large is not None:
            self.metrics.evaluated(kind, "reference_failed")
            if kind == "problem":
                return Answered(finding=self._problem_report(too_large))
            return Answered(error=f"{REFERENCE_FAILED}: {too_large}")
        if kind == "problem" or isinstance(request, ProblemRequest):
            return None
        too_large = self._too_large("candidate", request.custom_model_src)
        if too_large is None:
            return None
        status = Status.LOAD
        self.metrics.evaluated(kind, status.value)
        if kind == "compile":
            report = CompileReport(ok=False, status=status.value, message=too_large, error_name=_ERROR_NAME)
            return Answered(finding=report)
        if kind == "profile":
            return Answered(finding=ProfileReport(status=status.value, profile=None, message=too_large))
        return Answered(finding=self._verdict(too_large))

    def _too_large(self, whose: str, source: str) -> str | None:
        limit = self.settings.max_source_bytes
        size = len(source.encode("utf-8", "surrogatepass"))
        if size <= limit:
            return None
        return f"the {whose} has {size} bytes; this judge takes at most {limit} (MAX_SOURCE_BYTES)"

    def _verdict(self, too_large: str) -> Verdict:
        metadata = {
            "hardware": self.machine.hardware,
            "device": "cuda" if self.machine.cuda_available else "cpu",
            "compilation_error_name": _ERROR_NAME,
            "compilation_error": too_large,
            "feedback": f"load: {too_large}\nNext: {_NEXT}",
        }
        return Verdict(status=Status.LOAD, metadata=metadata)

    def _problem_report(self, too_large: str) -> ProblemReport:
        return ProblemReport(
            ok=False,
            reason=too_large,
            device="cuda" if self.machine.cuda_available else "cpu",
            hardware=self.machine.hardware,
        )
