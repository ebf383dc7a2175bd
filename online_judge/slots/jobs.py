"""A job as the gateway submits it to a slot, and how a slot runs each kind."""

import threading
from dataclasses import dataclass
from typing import Literal, Protocol

from adaexplore.core.errors import JudgeError
from adaexplore.core.text.tunables import TUNABLES
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport, EvaluationRequest, JobKind, ProblemReport, ProfileReport
from online_judge.slots.compile_slot import CompileSlot
from online_judge.slots.config_sweep import evaluate_tuned
from online_judge.slots.device_slot import DeviceSlot, Request
from online_judge.slots.devices import Device

Finding = Verdict | ProblemReport | CompileReport | ProfileReport
Loss = Literal["crashed", "gone", "failed"]
"""Ways to lose a worker: its process died, its machine is gone, or the judge's own code failed in it."""
MOST_LOST: dict[Loss, int] = {"crashed": 2, "gone": 5, "failed": 2}
"""Losses of each kind during one job after which no further worker tries it."""


class WorkerLost(JudgeError):
    """A worker on another machine did not finish a job; ``final`` is the outcome after too many losses."""

    def __init__(self, why: Loss, device: int, final: Finding | JudgeError) -> None:
        super().__init__(f"device {device}: its worker {why}")
        self.why = why
        self.device = device
        self.final = final


@dataclass(frozen=True)
class EvaluationJob:
    """One job; ``recorded_ms`` is a reference time to use instead of a measured one.

    A worker that gets an ``id`` twice does the job once.
    """

    kind: JobKind
    request: Request
    recorded_ms: float | None = None
    id: str = ""


class RemoteSlot(Protocol):
    """A slot of a device on another machine."""

    @property
    def device(self) -> Device: ...

    stage_seconds: dict[str, float]

    def run(self, job: EvaluationJob, cancelled: threading.Event) -> Finding:
        """Do a job as :func:`run` does; raises WorkerLost if another worker may try."""

    def close(self) -> None: ...


Slot = DeviceSlot | CompileSlot | RemoteSlot


def run(slot: Slot, job: EvaluationJob, cancelled: threading.Event) -> Finding:
    """Do a job on a slot.

    Raises:
        ProblemError: the reference fails; for a ``problem`` that is the result.
        JudgeError: the judge's own code raised, or its processes died twice while nobody's time ran.
        Cancelled: ``cancelled`` was set.
    """
    if not isinstance(slot, DeviceSlot | CompileSlot):
        return slot.run(job, cancelled)
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
