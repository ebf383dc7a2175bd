"""The owner of one device."""

from __future__ import annotations

import os
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from online_judge.processes.fork_client import ForkClient
from online_judge.processes.gpu_lease import GpuLeases
from online_judge.settings import Settings
from online_judge.slots.clean_times import CleanTimes
from online_judge.slots.device_processes import DeviceProcesses
from online_judge.slots.device_slot import DeviceSlot
from online_judge.slots.devices import Device


class DeviceWorker:
    """Owns a device's leases, waiting processes, known reference times and slots.

    A job is submitted to one of the slots and cancelled by its event; see :meth:`DeviceSlot.run`.

    Attributes:
        device: what it owns.
        candidates: the candidate processes that wait for a candidate.
        slots: what jobs run in.
    """

    def __init__(self, fork_client: ForkClient, device: Device, settings: Settings) -> None:
        """Start nothing yet."""
        self.device = device
        leases = GpuLeases(_lock_file(fork_client, device))
        self._processes = DeviceProcesses(fork_client, device, settings, leases)
        self.candidates = self._processes.candidates
        known = CleanTimes()
        self.slots = tuple(
            DeviceSlot(fork_client, device, settings, leases, self._processes, known)
            for _ in range(settings.max_concurrent_evals)
        )

    def start(self) -> None:
        """Make the processes ready; return when each slot has its first evaluator.

        Raises:
            JudgeError: none can be started here.
        """
        self._processes.fill()
        with ThreadPoolExecutor(len(self.slots)) as threads:
            for started in [threads.submit(slot.start) for slot in self.slots]:
                started.result()

    def close(self) -> None:
        """End the processes that wait; those of a slot end with the slot."""
        self._processes.close()


def _lock_file(fork_client: ForkClient, device: Device) -> Path:
    """One file per device: for a GPU one that other judges of this user find as well."""
    if device.kind != "cuda":
        return fork_client.home / f"{device.kind}-{device.id}.lock"
    name = f"judge-{os.getuid()}-gpu-{device.visible_devices}.lock"
    return Path(tempfile.gettempdir(), name.replace("/", "_"))
