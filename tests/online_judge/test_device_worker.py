"""The owner of one device."""

import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from online_judge.processes.fork_client import ForkClient
from online_judge.processes.gpu_lease import GpuLeases
from online_judge.processes.pool import Pool
from online_judge.settings import Settings
from online_judge.slots import device_worker
from online_judge.slots.devices import Device


def test_job_that_runs_alone_finds_no_waiting_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    freed: list[Pool] = []
    made: list[GpuLeases] = []

    def leases(path: Any) -> GpuLeases:
        made.append(GpuLeases(path))
        return made[-1]

    monkeypatch.setattr(Pool, "free_idle", lambda pool: freed.append(pool))  # bound to a pool
    monkeypatch.setattr(device_worker, "GpuLeases", leases)
    forks = cast(ForkClient, SimpleNamespace(home=tmp_path))
    device_worker.LocalWorker(forks, Device(0, "cpu", "", "x"), Settings())
    with made[0].claim("p", threading.Event(), others=2):
        assert freed == []
    with made[0].claim("p", threading.Event(), others=0):
        assert len(set(map(id, freed))) == 2
