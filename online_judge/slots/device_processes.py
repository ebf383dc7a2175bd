"""Processes of one device that wait for work."""

from __future__ import annotations

import itertools
import threading
from dataclasses import replace
from functools import partial

from online_judge.processes.fork_client import ForkClient
from online_judge.processes.gpu_lease import Cancelled, GpuLeases
from online_judge.processes.pool import Pool, ReadyProcess
from online_judge.sandbox.process_spec import ProcessSpec
from online_judge.settings import Settings
from online_judge.slots.devices import Device

_SPARE, _SPARE_ON_GPU = 1, 2
"""Evaluators of a device that wait for a reference that no evaluator of a slot knows yet."""
_job_numbers = itertools.count(1)


class DeviceProcesses:
    """Candidate processes and evaluators of one device; safe to call from threads."""

    def __init__(
        self, fork_client: ForkClient, device: Device, settings: Settings, leases: GpuLeases
    ) -> None:
        """Start nothing yet; on a GPU nothing starts while something is timed."""
        self._forks = fork_client
        self._device = device
        self._settings = settings
        target = settings.armed_players
        cuda = device.kind == "cuda"
        if target is None:
            target = max(2, settings.max_concurrent_evals) if cuda else 1
        spare = min(target, _SPARE_ON_GPU if cuda else _SPARE)
        disturbed = leases if cuda else None
        self.candidates = Pool(fork_client, self._spec, target, disturbed)
        self._evaluators = Pool(fork_client, self._evaluator_spec, spare, disturbed, "evaluator")

    def fill(self) -> None:
        """Begin to make ready what should be."""
        self.candidates.fill()
        self._evaluators.fill()

    def close(self) -> None:
        """End all that wait."""
        self.candidates.close()
        self._evaluators.close()

    def candidate(self, build_dir: str | None, cancelled: threading.Event) -> ReadyProcess:
        """Return a candidate process: one that waits, or one started now for a build folder of its own.

        Raises:
            Cancelled: ``cancelled`` was set.
            ForkServerLost, JudgeError: none can be started.
        """
        if build_dir is not None:
            return self.candidates.start_now(partial(self._spec, build_dir))
        return self._take(self.candidates, cancelled)

    def evaluator(self, cancelled: threading.Event) -> ReadyProcess:
        """Return an evaluator that has had no order; raises as :meth:`candidate` does."""
        return self._take(self._evaluators, cancelled)

    def _take(self, pool: Pool, cancelled: threading.Event) -> ReadyProcess:
        ready = pool.take(cancelled)
        if ready is None:
            raise Cancelled
        return ready

    def _spec(self, build_dir: str | None = None) -> ProcessSpec:
        """Make a private folder and the spec of a candidate process in it."""
        folder = self._forks.home / f"job-{next(_job_numbers)}"
        folder.mkdir(mode=0o700, parents=True)  # the judge's own folder may have been removed
        return ProcessSpec(
            folder=str(folder),
            device=self._device.kind,
            visible_devices=self._device.visible_devices,
            compile_target=self._settings.compile_target,
            build_dir=build_dir,
            cores=self._device.cores.others,
        )

    def _evaluator_spec(self) -> ProcessSpec:
        return replace(
            self._spec(),
            role="evaluator",
            timing_cores=self._device.cores.timing,
            cpu_max_elements=self._settings.cpu_max_elements,
            cpu_max_flops=self._settings.cpu_max_flops,
        )
