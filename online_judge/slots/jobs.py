"""A job as the gateway submits it to a slot, and what a slot does for each kind."""

from __future__ import annotations

import threading
from dataclasses import dataclass

from adaexplore.core.tunables import TUNABLES
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport, EvaluationRequest, JobKind, ProblemReport, ProfileReport
from online_judge.slots.compile_slot import CompileSlot
from online_judge.slots.config_sweep import evaluate_tuned
from online_judge.slots.device_slot import DeviceSlot, Request

Slot = DeviceSlot | CompileSlot
Finding = Verdict | ProblemReport | CompileReport | ProfileReport


@dataclass(frozen=True)
class EvaluationJob:
    """One job; ``recorded_ms`` is a reference time to use instead of a measured one."""

    kind: JobKind
    request: Request
    recorded_ms: float | None = None


def run(slot: Slot, job: EvaluationJob, cancelled: threading.Event) -> Finding:
    """Do a job on a slot.

    Raises:
        ProblemError: the reference fails; for a ``problem`` that is the result.
        JudgeError: the judge's own code raised, or its processes died twice while nobody's time ran.
        Cancelled: ``cancelled`` was set.
    """
    request = job.request
    if isinstance(slot, DeviceSlot) and job.kind == "problem":
        return slot.check_problem(request, cancelled)
    assert isinstance(request, EvaluationRequest)
    if isinstance(slot, CompileSlot):
        return slot.compile(request, cancelled)
    if job.kind == "profile":
        return slot.profile(request, cancelled)
    if request.tune_s and TUNABLES in request.custom_model_src:
        return evaluate_tuned(slot, request, job.recorded_ms, cancelled)
    return slot.evaluate(request, job.recorded_ms, cancelled)
