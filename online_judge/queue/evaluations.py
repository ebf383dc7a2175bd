"""Find a job's device, its recorded reference time and its question; run jobs on slots."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from adaexplore.core.errors import ProblemError
from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, JobKind, ProblemReport, ProblemRequest, fits
from online_judge.common import printable
from online_judge.processes.gpu_lease import Cancelled
from online_judge.queue.cache import Question
from online_judge.queue.metrics import Metrics
from online_judge.settings import Settings
from online_judge.slots import baselines, jobs
from online_judge.slots.device_slot import Request
from online_judge.slots.devices import Machine
from online_judge.slots.jobs import EvaluationJob, Finding, Slot, WorkerLost
from online_judge.verdict import reports


class NoSuchDevice(Exception):
    """A request names a device that this judge does not have."""


@dataclass(frozen=True)
class Evaluations:
    """This judge's part of a job: devices, recorded times, questions, and the run on a slot."""

    settings: Settings
    machine: Machine
    versions: dict[str, str]  # of torch, triton and python
    metrics: Metrics

    def device_of(self, kind: JobKind, request: Request) -> int | None:
        """Return the device that a job is bound to, None for any; raises NoSuchDevice."""
        if kind == "compile":
            return None
        machine, gpus = self.machine, request.gpus if isinstance(request, EvaluationRequest) else ()
        models = {*machine.known, *(each.hardware for each in machine.devices)}
        if models and not machine.awaited and not any(fits(gpus, model) for model in models):
            choice = ", ".join(sorted(models))
            raise NoSuchDevice(f"no device is a {' or '.join(gpus)}; choose gpu among: {choice}")
        known = [each.id for each in machine.devices if fits(gpus, each.hardware)]
        if not known or machine.elastic:
            return None
        if kind == "problem" or isinstance(request, ProblemRequest):
            return known[0]
        if self.settings.allocation_mode == "auto":
            return None
        if request.device is None:
            return known[0]
        if request.device not in known:
            raise NoSuchDevice(f"Device {request.device} is not available; choose one of {known}")
        return request.device

    def recorded_ms(self, request: EvaluationRequest) -> float | None:
        """Read the recorded reference time that a job is to use; None if there is none."""
        if request.baseline != "eager" or request.direction != "forward":
            return None
        hardware = {each.hardware for each in self.machine.devices}
        return baselines.recorded_ms(self.settings.timing_root, request, self.versions, hardware)

    def question(
        self,
        request: EvaluationRequest,
        recorded_ms: float | None,
        device: int | None,
        kind: JobKind = "candidate",
    ) -> Question | None:
        """Return the key of a candidate's verdict or profile on ``device``, or on any fitting device.

        None while there is no such device, because its hardware is unknown.
        """
        on = (each for each in self.machine.devices if device is None or each.id == device)
        hardware = {each.hardware for each in on if fits(request.gpus, each.hardware)}
        if self.machine.elastic and not hardware:
            return None
        versions = [self.versions.get(name) for name in ("torch", "triton", "python")]
        return Question.of(request, recorded_ms, versions, kind, hardware)

    def answer_at_once(self, kind: JobKind, request: Request) -> Finding | ProblemError | None:
        """Return the outcome for a source above ``MAX_SOURCE_BYTES``; None if all sources fit.

        Parsing and importing short statements takes one core about 4 s for 256 KiB and 17 s for 1 MiB.
        """
        limit = self.settings.max_source_bytes
        problem = request.original_model_src + (request.hidden_workloads or "")
        why = reports.excess("reference", problem, limit)
        if why is not None:
            self.metrics.evaluated(kind, "reference_failed")
            if kind != "problem":
                return ProblemError(why)
            hardware = self.machine.hardware
            return ProblemReport(ok=False, reason=why, device=self.machine.kind, hardware=hardware)
        if kind == "problem" or isinstance(request, ProblemRequest):
            return None
        why = reports.excess("candidate", request.custom_model_src, limit)
        if why is None:
            return None
        self.metrics.evaluated(kind, Status.LOAD.value)
        return reports.too_large(kind, why, hardware=self.machine.hardware, device=self.machine.kind)

    def run(self, slot: Slot, job: EvaluationJob, cancelled: threading.Event) -> Finding:
        """Do a job as :func:`online_judge.slots.jobs.run` does, and count it."""
        status = "infra_error"
        begin = time.monotonic()
        slot.stage_seconds = {}
        try:
            found: Finding = jobs.run(slot, job, cancelled)
            found = printable.tree(found)  # the candidate's texts may hold characters that cannot be sent
            if isinstance(found, ProblemReport):
                status = "ok" if found.ok else "reference_failed"
            else:
                status = str(found.status)
            if isinstance(found, Verdict):
                self.metrics.judged(slot.device.id, found)
            return found
        except Cancelled:
            status = "cancelled"
            raise
        except WorkerLost as lost:
            self.metrics.lost_worker(lost.why)
            raise
        except ProblemError as error:
            status = "reference_failed"
            raise ProblemError(printable.text(str(error))) from error
        finally:
            self.metrics.evaluated(job.kind, status)
            self.metrics.spent(slot.stage_seconds | {"slot": time.monotonic() - begin})
