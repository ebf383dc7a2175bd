"""What a job of each kind means to a slot."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass

from adaexplore.core.errors import ProblemError
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import (
    CompileReport,
    EvaluationRequest,
    JobKind,
    ProblemReport,
    ProblemRequest,
    ProfileReport,
)
from online_judge.common import printable
from online_judge.processes.gpu_lease import Cancelled
from online_judge.queue.cache import Question
from online_judge.queue.metrics import Metrics
from online_judge.queue.scheduler import Work
from online_judge.settings import Settings
from online_judge.slots import baselines
from online_judge.slots.compile_slot import CompileSlot
from online_judge.slots.device_slot import DeviceSlot
from online_judge.slots.devices import Machine
from online_judge.slots.jobs import EvaluationJob

Finding = Verdict | ProblemReport | CompileReport | ProfileReport


class NoSuchDevice(Exception):
    """A request names a device that this judge does not have, or it has none."""


@dataclass(frozen=True)
class Evaluations:
    """Turns requests into work for the scheduler.

    Attributes:
        settings: of the judge.
        machine: what it runs on.
        versions: of torch, triton and python.
        metrics: told how each one ends.
    """

    settings: Settings
    machine: Machine
    versions: dict[str, str]
    metrics: Metrics

    def device_of(self, kind: JobKind, request: EvaluationRequest | ProblemRequest) -> int | None:
        """The device a job is bound to; None for any.

        Raises:
            NoSuchDevice: it is not here.
        """
        known = [each.id for each in self.machine.devices]
        if not known or kind == "compile":
            return None
        if kind == "problem":
            return known[0]
        device = getattr(request, "device", None)
        if self.settings.allocation_mode == "auto":
            return None
        if device is None:
            return known[0]
        if device not in known:
            raise NoSuchDevice(f"Device {device} is not available; choose one of {known}")
        return int(device)

    def question(
        self, request: EvaluationRequest, device: int | None, kind: JobKind = "candidate"
    ) -> Question:
        """What identifies a candidate's verdict, or its profile, on ``device``, or on any."""
        hardware = {each.hardware for each in self.machine.devices if device is None or each.id == device}
        versions = [self.versions.get(name) for name in ("torch", "triton", "python")]
        return Question.of(request, self._recorded_ms(request), [*sorted(hardware), *versions], kind)

    def work(self, kind: JobKind, request: EvaluationRequest | ProblemRequest) -> Work:
        """What a slot does for a job; it raises as :meth:`DeviceSlot.run` does."""

        def run(device_slot: DeviceSlot | CompileSlot, cancelled: threading.Event) -> Finding:
            status = "infra_error"
            begin = time.monotonic()
            device_slot.stage_seconds = {}
            try:
                recorded_ms = self._recorded_ms(request) if isinstance(request, EvaluationRequest) else None
                job = EvaluationJob(kind, request, recorded_ms)
                found = _printable(device_slot.run(job, cancelled))
                status = _status(found)
                self._tell(device_slot.device.id, found)
                return found
            except Cancelled:
                status = "cancelled"
                raise
            except ProblemError as error:
                status = "reference_failed"
                raise ProblemError(printable.text(str(error))) from error
            finally:
                self.metrics.evaluated(kind, status)
                self.metrics.spent(device_slot.stage_seconds | {"slot": time.monotonic() - begin})

        return run

    def _tell(self, device: int, found: Finding) -> None:
        """What the metrics show of a verdict."""
        if not isinstance(found, Verdict):
            return
        flags = found.metadata.get("integrity", [])
        self.metrics.flagged([*flags, *found.metadata.get("problem_flags", [])])
        if "baseline_drift" in flags:
            self.metrics.drifted(device)
        swept_s = found.metadata.get("tuned", {}).get("seconds")
        if swept_s is not None:
            self.metrics.spent({"sweep": swept_s})
        if slot := found.runtime_stats.get("slot"):
            self.metrics.timed(device, slot["held_s"], slot["gpu_s"])

    def _recorded_ms(self, request: EvaluationRequest) -> float | None:
        if request.baseline != "eager":
            return None
        return baselines.recorded_ms(
            self.settings.timing_root, request.gpu_name, request.level, request.problem_id
        )


def _printable(found: Finding) -> Finding:
    """Return the finding with text that an answer can carry: names and values come from the candidate."""
    return type(found).model_validate(printable.tree(found.model_dump()))


def _status(found: Finding) -> str:
    if isinstance(found, Verdict | CompileReport | ProfileReport):
        return str(found.status)
    return "ok" if found.ok else "reference_failed"
