"""Jobs whose worker is lost, and the parts of a fleet that need no Ray."""

import asyncio
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import ConfigError, JudgeError
from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest
from online_judge.queue.job import Job
from online_judge.queue.scheduler import Scheduler
from online_judge.scale.actor import Description, EachOnce, Outcome, versions_of
from online_judge.scale.canary import Canaries
from online_judge.scale.places import decided, places
from online_judge.settings import Settings
from online_judge.slots.devices import Device
from online_judge.slots.jobs import EvaluationJob, Loss, WorkerLost
from tests.verdicts import make_verdict

from .test_placement import FakeSlot, slot

PASSED = Verdict(status=Status.PASSED)
CRASHED = Verdict(status=Status.CRASH)


def outcomes(devices: list[FakeSlot], lose: Callable[[int, int], Loss | None]) -> tuple[Any, list[int]]:
    """Run one job; ``lose`` says by device and attempt how the worker is lost. Return outcome and devices."""
    tried: list[int] = []

    def run(where: Any, job: EvaluationJob, cancelled: threading.Event) -> Verdict:
        tried.append(where.device.id)
        why = lose(where.device.id, len(tried))
        if why is not None:
            raise WorkerLost(why, where.device.id, CRASHED if why == "crashed" else JudgeError("lost"))
        return PASSED

    async def body() -> Any:
        scheduler = Scheduler(devices, 10, run)
        scheduler.start()
        job = Job("candidate", EvaluationRequest())
        scheduler.submit(job)
        await asyncio.wait_for(job.ended.wait(), 20)
        await scheduler.close()
        return job.outcome

    return asyncio.run(body()), tried


def test_job_of_lost_worker_runs_on_another() -> None:
    outcome, tried = outcomes([slot(0), slot(1)], lambda device, attempt: "crashed" if attempt == 1 else None)
    assert outcome == PASSED
    assert sorted(tried) == [0, 1]


def test_two_crashes_on_two_devices_are_the_candidates() -> None:
    outcome, tried = outcomes([slot(0), slot(1), slot(2)], lambda device, attempt: "crashed")
    assert outcome == CRASHED
    assert len(set(tried)) == len(tried) == 2


def test_lost_machines_are_not_the_candidates_fault() -> None:
    outcome, tried = outcomes([slot(0)], lambda device, attempt: "gone" if attempt < 5 else None)
    assert outcome == PASSED
    assert len(tried) == 5


def test_judges_failure_on_two_devices_is_reported() -> None:
    outcome, _ = outcomes([slot(0), slot(1)], lambda device, attempt: "failed")
    assert isinstance(outcome, JudgeError)


def test_device_that_joins_takes_waiting_jobs() -> None:
    async def body() -> None:
        scheduler = Scheduler([], 10, lambda where, job, cancelled: PASSED)
        scheduler.start()
        job = Job("candidate", EvaluationRequest())
        scheduler.submit(job)
        await asyncio.sleep(0)
        assert scheduler.status().total_queued == 1
        late = slot(7)
        scheduler.admit([late])
        await asyncio.wait_for(job.ended.wait(), 20)
        scheduler.dismiss([late])
        assert scheduler.status().per_device == {}
        await scheduler.close()

    asyncio.run(body())


def test_job_asked_for_twice_is_done_once() -> None:
    jobs, release, works = EachOnce(), threading.Event(), []

    def work(cancelled: threading.Event) -> Outcome:
        works.append(1)
        release.wait(10)
        return Outcome(PASSED)

    with ThreadPoolExecutor(3) as threads:
        asked = [threads.submit(jobs.do, "a", work) for _ in range(3)]
        release.set()
        assert {each.result(10).found == PASSED for each in asked} == {True}
    assert jobs.do("a", work).found == PASSED
    assert len(works) == 1


def test_failed_jobs_rerun_and_running_jobs_are_cancellable() -> None:
    jobs = EachOnce()
    assert jobs.do("a", lambda cancelled: Outcome(error="no", whose="judge")).found is None
    assert jobs.do("a", lambda cancelled: Outcome(PASSED)).found == PASSED

    def cancel(cancelled: threading.Event) -> Outcome:
        jobs.cancel("b")
        return Outcome(whose="cancelled" if cancelled.is_set() else "judge")

    assert jobs.do("b", cancel).whose == "cancelled"


def test_worker_with_different_triton_version_is_refused() -> None:
    here = versions_of({"torch": "2.13.0", "triton": "3.7.1", "numpy": "2.0"})
    worker = Description(Device(0, "cpu", "", "CPU"), here | {"numpy": "1.0"})
    assert worker.difference(here) is None
    other = replace(worker, versions=here | {"triton": "3.6.0"})
    why = other.difference(here)
    assert why == "it has triton 3.6.0, the gateway triton 3.7.1: install the same on both"


def test_canary_over_three_percent_slower_is_a_fault() -> None:
    canaries = Canaries()

    def fault(ms: float, hardware: str = "H100") -> str | None:
        return canaries.fault(hardware, make_verdict(status=Status.PASSED, runtime_ms=ms))

    assert [fault(1.0), fault(1.029), fault(5.0, "A100")] == [None, None, None]
    assert fault(1.04) == "the canary kernel took 1.04 ms; the fastest H100 takes 1 ms"
    assert fault(0.9) is None
    assert fault(1.0) is not None
    assert canaries.fault("H100", CRASHED) == "the canary kernel got the verdict crash"


def node(name: str, alive: bool = True, **resources: float) -> dict[str, Any]:
    return {"NodeID": name, "Alive": alive, "NodeManagerHostname": name, "Resources": resources}


def test_each_gpu_of_live_nodes_has_a_place() -> None:
    nodes = [node("a", GPU=2.0), node("b", CPU=8.0), node("c", alive=False, GPU=8.0)]
    assert [(place.node, place.index, place.gpu) for place in places(nodes, "cuda")] == [
        ("a", 0, True),
        ("a", 1, True),
    ]
    assert [(place.node, place.gpu, place.share) for place in places(nodes, "cpu")] == [
        ("a", False, 1),
        ("b", False, 1),
    ]
    assert places(nodes[1:], "cuda") == []
    assert len(places(nodes[1:], "auto")) == 1


def test_lost_gpus_are_not_replaced_by_cpus() -> None:
    kept = decided([node("a", GPU=1.0), node("b", CPU=8.0)], decided([node("b", CPU=8.0)], "auto"))
    assert kept == "cuda"
    assert places([node("b", CPU=8.0)], decided([node("b", CPU=8.0)], kept)) == []
    assert decided([node("a", GPU=1.0)], "cpu") == "cpu"


def test_workers_avoid_each_others_timing_cores() -> None:
    first, second = (place.cores(range(16)) for place in places([node("a", GPU=2.0)], "cuda"))
    assert (first.timing, second.timing) == ((0, 1), (2, 3))
    assert first.others == second.others == tuple(range(4, 16))
    assert places([node("a")], "cpu")[0].cores(range(16)).others == ()


def test_ray_requires_its_extra_and_excludes_available_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(ConfigError, match=r"pip install 'adaexplore\[scale\]'"):
        Settings.from_environment({"JUDGE_RAY": "auto"})
    monkeypatch.setattr("importlib.util.find_spec", lambda name: object())
    assert Settings.from_environment({"JUDGE_RAY": "10.0.0.1:6379"}).ray == "10.0.0.1:6379"
    with pytest.raises(ConfigError, match="AVAILABLE_GPUS is for the devices of one machine"):
        Settings.from_environment({"JUDGE_RAY": "auto", "AVAILABLE_GPUS": "0"})


def test_judge_without_a_cluster_imports_no_ray() -> None:
    code = "import sys; sys.modules['ray'] = None; import online_judge.__main__, adaexplore.cli.main"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


GATEWAYS = """
import os, signal, sys
from online_judge.scale import restarts

def serve(announce, parent):
    with open(sys.argv[1], "a") as file:
        print(announce is not None, parent == os.getppid(), file=file)
    lives = len(open(sys.argv[1]).readlines())
    if lives == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    return {2: restarts.LOST, 3: 1}.get(lives, 3)

sys.exit(restarts.in_children(serve, os.open(os.devnull, os.O_RDWR), None))
"""


@pytest.mark.slow
def test_gateway_that_ray_ended_is_followed_by_another(tmp_path: Path) -> None:
    command = [sys.executable, "-c", GATEWAYS, str(tmp_path / "lives")]
    assert subprocess.run(command, check=False, timeout=60).returncode == 3
    assert (tmp_path / "lives").read_text().splitlines() == ["True True", *["False True"] * 3]
