"""The worker of one device, in a Ray actor. No client code runs in this process."""

import asyncio
import logging
import os
import queue
import socket
import subprocess
import threading
from collections import OrderedDict
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from typing import Literal

from adaexplore.core.errors import JudgeError, ProblemError
from online_judge.processes.fork_client import ForkClient
from online_judge.processes.gpu_lease import Cancelled
from online_judge.sandbox import linux
from online_judge.scale.places import Place
from online_judge.settings import Settings
from online_judge.slots import devices, jobs
from online_judge.slots.device_slot import DeviceSlot
from online_judge.slots.device_worker import LocalWorker
from online_judge.slots.devices import Device
from online_judge.slots.jobs import EvaluationJob, Finding
from online_judge.verdict.endings import PROTOCOL

log = logging.getLogger(__name__)

_KEPT = 256
"""Number of latest outcomes kept for a gateway that asks again."""
_VERSIONS = ("torch", "triton", "protocol")


@dataclass(frozen=True)
class Description:
    """A worker's description of itself after its start."""

    device: Device
    versions: dict[str, str]

    def difference(self, here: Mapping[str, str]) -> str | None:
        """Return why a gateway with the versions ``here`` refuses the worker; None if it accepts it."""
        names = [name for name in _VERSIONS if self.versions.get(name) != here.get(name)]
        if not names:
            return None
        there, own = (", ".join(f"{name} {of.get(name)}" for name in names) for of in (self.versions, here))
        return f"it has {there}, the gateway {own}: install the same on both"


def versions_of(software: Mapping[str, str]) -> dict[str, str]:
    """Return the versions on which a verdict depends."""
    return {"torch": "none", "triton": "none", **software, "protocol": str(PROTOCOL)}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a job: a finding, or an error and whose fault it is."""

    found: Finding | None = None
    error: str = ""
    whose: Literal["", "problem", "judge", "cancelled"] = ""
    stage_seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Vitals:
    ready: int  # processes that wait for a candidate
    memory_errors: int  # uncorrected memory errors of the GPU since its driver started; 0 without a GPU


class EachOnce:
    """Does each job once, however often it is requested; thread-safe."""

    def __init__(self) -> None:
        self._jobs: OrderedDict[str, tuple[Future[Outcome], threading.Event]] = OrderedDict()
        self._lock = threading.Lock()

    def do(self, job_id: str, work: Callable[[threading.Event], Outcome]) -> Outcome:
        """Return the outcome of a job's work; a job without a finding may be repeated."""
        with self._lock:
            known = self._jobs.get(job_id)
            future, cancelled = known or self._jobs.setdefault(job_id, (Future(), threading.Event()))
        if known is not None:
            return future.result()
        outcome = Outcome(error="the judge failed unexpectedly", whose="judge")
        try:
            outcome = work(cancelled)
        finally:
            with self._lock:
                if outcome.found is None:
                    del self._jobs[job_id]
                done = [each for each, (other, _) in self._jobs.items() if other.done()]
                for each in done[:-_KEPT]:
                    del self._jobs[each]
            future.set_result(outcome)
        return outcome

    def cancel(self, job_id: str | None = None) -> None:
        """End a running job; without an id end all."""
        with self._lock:
            for each, (_, cancelled) in self._jobs.items():
                if job_id in (each, None):
                    cancelled.set()


class Actor:
    """A worker as an actor; thread-safe."""

    def __init__(self, settings: Settings, number: int, place: Place) -> None:
        """Start nothing yet; ``number`` is the device's number for clients."""
        self._settings = settings
        self._number = number
        self._place = place
        self._forks = ForkClient(settings.require_sandbox)
        self._free: queue.SimpleQueue[DeviceSlot] = queue.SimpleQueue()
        self._jobs = EachOnce()
        self._closed = threading.Event()

    def start(self) -> Description:
        """Start the processes; raises JudgeError if they do not start."""
        linux.forbid_inspection()
        self._forks.start()
        machine = devices.find(self._forks, self._settings)
        if not machine.devices:
            raise JudgeError("CUDA does not start there; look at nvidia-smi on that machine")
        device = replace(
            machine.devices[0], id=self._number, cores=self._place.cores(os.sched_getaffinity(0))
        )
        device = replace(device, slots=devices.slots(device, self._settings, self._place.share))
        self._worker = LocalWorker(self._forks, device, self._settings)
        asyncio.run(self._worker.start())
        for slot in self._worker.slots:
            self._free.put(slot)
        versions = versions_of(self._forks.software.versions)
        return Description(replace(device, node=socket.gethostname()), versions)

    def run(self, job: EvaluationJob) -> Outcome:
        """Do a job; a second call with its id gets the outcome of the first."""

        def work(cancelled: threading.Event) -> Outcome:
            slot = self._free.get()
            try:
                return _outcome(slot, job, cancelled)
            finally:
                self._free.put(slot)

        return self._jobs.do(job.id, work)

    def cancel(self, job_id: str) -> None:
        self._jobs.cancel(job_id)

    def vitals(self) -> Vitals:
        return Vitals(self._worker.ready, _memory_errors(self._worker.device))

    def watch(self) -> None:
        """Block until the worker closes, so that a caller notices at once if this process dies."""
        self._closed.wait()

    def close(self) -> None:
        self._jobs.cancel()
        asyncio.run(self._worker.close())
        for slot in self._worker.slots:
            slot.close()
        self._forks.close()
        self._closed.set()


def _outcome(slot: DeviceSlot, job: EvaluationJob, cancelled: threading.Event) -> Outcome:
    slot.stage_seconds = {}
    try:
        return Outcome(jobs.run(slot, job, cancelled), stage_seconds=slot.stage_seconds)
    except Cancelled:
        return Outcome(whose="cancelled")
    except ProblemError as error:
        return Outcome(error=str(error), whose="problem", stage_seconds=slot.stage_seconds)
    except JudgeError as error:
        return Outcome(error=str(error), whose="judge")
    except Exception as error:
        log.exception("an evaluation failed unexpectedly")
        return Outcome(error=f"the judge failed unexpectedly ({type(error).__name__})", whose="judge")


def _memory_errors(device: Device) -> int:
    """Ask nvidia-smi for the uncorrected memory errors of a GPU; 0 if it counts none."""
    if device.kind != "cuda":
        return 0
    try:
        return devices.smi(device, "ecc.errors.uncorrected.volatile.total")[0]
    except (OSError, subprocess.SubprocessError, ValueError, IndexError):  # [N/A]: it has no such memory
        return 0
