"""The owner of one device."""

import asyncio
import os
import tempfile
from dataclasses import replace
from pathlib import Path

from online_judge.processes.fork_client import ForkClient
from online_judge.processes.gpu_lease import GpuLeases
from online_judge.processes.pool import Pool
from online_judge.sandbox.process_spec import ProcessSpec
from online_judge.settings import Settings
from online_judge.slots.baselines import CleanTimes
from online_judge.slots.device_slot import DeviceSlot
from online_judge.slots.devices import Device

_SPARE, _SPARE_ON_GPU = 1, 2
"""Spare evaluators of a device, for references that none of its slots has loaded."""


class LocalWorker:
    """A device of this machine with its leases, waiting processes, known reference times and slots."""

    def __init__(self, fork_client: ForkClient, device: Device, settings: Settings) -> None:
        """Start nothing yet. On a GPU no process starts while something is timed."""
        self.device = device
        cuda = device.kind == "cuda"
        target = settings.ready_processes
        if target is None:
            target = max(2, device.slots) if cuda else 1
        spare = min(target, _SPARE_ON_GPU if cuda else _SPARE)
        leases = GpuLeases(_lock_file(fork_client, device))
        disturbed = leases if cuda else None
        candidate = ProcessSpec(
            folder="",
            device=device.kind,
            visible_devices=device.visible_devices,
            compile_target=settings.compile_target,
            cores=device.cores.others,
        )
        evaluator = replace(
            candidate,
            role="evaluator",
            timing_cores=device.cores.timing,
            cpu_max_elements=settings.cpu_max_elements,
            cpu_max_flops=settings.cpu_max_flops,
        )
        self._candidates = Pool(fork_client, candidate, target, disturbed)
        self._evaluators = Pool(fork_client, evaluator, spare, disturbed)
        leases.on_alone += [self._candidates.free_idle, self._evaluators.free_idle]
        known = CleanTimes()
        self.slots = tuple(
            DeviceSlot(fork_client, device, settings, leases, self._candidates, self._evaluators, known)
            for _ in range(device.slots)
        )

    @property
    def ready(self) -> int:
        """Return how many candidate processes are waiting."""
        return self._candidates.ready

    async def start(self) -> None:
        """Start the processes; return once each slot has its first evaluator, or raise JudgeError."""
        self._candidates.fill()
        self._evaluators.fill()
        await asyncio.gather(*(asyncio.to_thread(slot.start) for slot in self.slots))

    async def close(self) -> None:
        """End the waiting processes; a slot ends its own."""
        await asyncio.to_thread(self._candidates.close)
        await asyncio.to_thread(self._evaluators.close)


def _lock_file(fork_client: ForkClient, device: Device) -> Path:
    """Return the device's lock file; all judges of this user share that of a GPU."""
    if device.kind != "cuda":
        return fork_client.home / f"{device.kind}-{device.id}.lock"
    name = f"judge-{os.getuid()}-gpu-{device.visible_devices}.lock"
    return Path(tempfile.gettempdir(), name.replace("/", "_"))
