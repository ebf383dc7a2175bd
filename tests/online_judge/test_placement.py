"""Placement of jobs on simulated slots, without a clock."""

import asyncio
import threading
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest

from adaexplore.core.errors import JudgeError
from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, fits
from online_judge.api import v1
from online_judge.common.tokens import Caller
from online_judge.queue.evaluations import Evaluations, NoSuchDevice
from online_judge.queue.job import Job
from online_judge.queue.metrics import Metrics
from online_judge.queue.placement import HEAD_START, Group
from online_judge.queue.scheduler import Scheduler
from online_judge.settings import Settings
from online_judge.slots.devices import Device, Machine
from online_judge.slots.jobs import EvaluationJob, Finding, Loss, WorkerLost

H100, A100 = "NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB"


@dataclass(eq=False)
class FakeSlot:
    device: Device
    stage_seconds: dict[str, float]

    def run(self, job: EvaluationJob, cancelled: threading.Event) -> Finding:
        raise NotImplementedError

    def close(self) -> None: ...


def slot(number: int, hardware: str = H100) -> FakeSlot:
    return FakeSlot(Device(number, "cuda", "", hardware), {})


def group(*slots: FakeSlot) -> Group:
    made = Group(100)
    for each in slots:
        made.admit(each)
    return made


def job(gpu: Any = None, client: str = "") -> Job:
    made = Job("candidate", EvaluationRequest(gpu=gpu), Caller(client, client))
    made.sharers = [made]
    return made


def lost(made: Job, why: Loss, device: int) -> bool:
    return made.may_try_again(WorkerLost(why, device, JudgeError("")))


@pytest.mark.parametrize(
    ("gpus", "hardware", "fit"),
    [
        ((), H100, True),
        (("H100",), H100, True),
        (("h100 hbm3",), H100, True),
        (("A10",), A100, False),
        (("A10", "H100"), H100, True),
        (("H100",), A100, False),
    ],
)
def test_model_is_named_by_words(gpus: tuple[str, ...], hardware: str, fit: bool) -> None:
    assert fits(gpus, hardware) is fit


def test_job_gets_the_model_that_it_names() -> None:
    queue = group(slot(0, H100), slot(1, A100))
    wants_a100, second, anywhere = job("A100"), job(["A100"]), job()
    for each in (wants_a100, second, anywhere):
        queue.add(each)
    pairs = [queue.pair(), queue.pair(), queue.pair()]
    placed = [(pair[0], pair[1].device.id) for pair in pairs if pair is not None]
    assert placed == [(wants_a100, 1), (anywhere, 0)]  # the second does not stop those behind it
    queue.free(wants_a100)
    pair = queue.pair()
    assert pair is not None
    assert pair[0] is second


def test_compile_jobs_need_no_gpu() -> None:
    queue = group(slot(0, "compiler (sm_90)"))
    compilation = Job("compile", EvaluationRequest(gpu="H100"))
    compilation.sharers = [compilation]
    queue.add(compilation)
    assert queue.pair() is not None


@pytest.mark.parametrize("mode", ["auto", "manual"])
def test_job_naming_gpu_model_is_bound_or_refused(mode: Any) -> None:
    devices = (slot(0, A100).device, slot(1, H100).device)
    evaluations = Evaluations(
        Settings(allocation_mode=mode), Machine(True, 2, devices, "sm_90"), {}, Metrics()
    )
    bound = evaluations.device_of("candidate", EvaluationRequest(gpu="H100"))
    assert bound == (None if mode == "auto" else 1)
    assert evaluations.device_of("compile", EvaluationRequest(gpu="B200")) is None
    with pytest.raises(NoSuchDevice, match="no device is a B200 or B300; choose gpu among: NVIDIA A100"):
        evaluations.device_of("candidate", EvaluationRequest(gpu=["B200", "B300"]))


def test_job_waits_for_model_that_may_join() -> None:
    machine = Machine(True, 1, (slot(0, A100).device,), "sm_90", elastic=True, awaited=True)
    evaluations = Evaluations(Settings(), machine, {}, Metrics())
    assert evaluations.device_of("candidate", EvaluationRequest(gpu="H100")) is None
    machine.awaited = False
    with pytest.raises(NoSuchDevice, match="choose gpu among: NVIDIA A100"):
        evaluations.device_of("candidate", EvaluationRequest(gpu="H100"))


def test_verdict_is_known_for_its_hardware_alone() -> None:
    devices = (slot(0, A100).device, slot(1, H100).device)
    evaluations = Evaluations(Settings(), Machine(True, 2, devices, "sm_90"), {}, Metrics())

    def key(gpu: Any) -> str:
        question = evaluations.question(EvaluationRequest(gpu=gpu), None, None)
        assert question is not None
        return question.exact

    assert key("H100") == key(["h100"])
    assert len({key("H100"), key("A100"), key(None)}) == 3
    nobody = Evaluations(Settings(), Machine(False, 0, (), "sm_90", elastic=True), {}, Metrics())
    assert nobody.question(EvaluationRequest(), None, None) is None


def test_lost_job_goes_first_and_to_another_device() -> None:
    queue = group(slot(0), slot(1))
    first, second = job(client="a"), job(client="a")
    queue.add(first)
    assert queue.pair() is not None
    queue.add(second)
    assert lost(first, "crashed", 0)
    queue.free(first)
    queue.put_back(first)
    assert queue.position(first) == 0
    pair = queue.pair()
    assert pair is not None
    assert (pair[0], pair[1].device.id) == (first, 1)
    later = job(client="a")
    queue.add(later)
    assert later.turn > second.turn  # what was put back costs its client no turn


def test_job_that_moves_forward_costs_others_no_turn() -> None:
    queue = group()
    jobs = [job() for _ in range(60)]
    for each in jobs:
        queue.add(each)
    queue.remove(jobs[0])
    queue.insert(jobs[0], jobs[0].rank - HEAD_START)
    queue.add(last := job())
    assert last.turn == 61
    for each in (last, jobs[59]):
        queue.remove(each)
    queue.add(last := job())
    assert last.turn == 60


def test_only_device_is_tried_again() -> None:
    queue, made = group(slot(0)), job()
    queue.add(made)
    queue.pair()
    assert lost(made, "failed", 0)
    queue.free(made)
    queue.put_back(made)
    assert queue.pair() is not None


@pytest.mark.parametrize(("why", "most"), [("crashed", 2), ("failed", 2), ("gone", 5)])
def test_job_is_tried_a_few_times(why: Loss, most: int) -> None:
    made = job()
    assert [lost(made, why, device) for device in range(most)] == [True] * (most - 1) + [False]


def test_dismissed_slot_gets_no_job_and_comes_back() -> None:
    only = slot(0)
    queue = group(only)
    running, waiting = job(), job()
    for each in (running, waiting):
        queue.add(each)
    queue.pair()
    queue.dismiss(only)
    queue.free(running)
    assert queue.pair() is None
    queue.admit(only)
    pair = queue.pair()
    assert pair is not None
    assert pair[0] is waiting


def test_health_answers_while_a_device_joins(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(True, 1, (slot(0).device,), "sm_90", elastic=True)

    def memory_bytes(device: Device) -> dict[str, int]:
        machine.join(slot(1).device)
        return {"memory_total": 0, "memory_allocated": 0, "memory_reserved": 0}

    monkeypatch.setattr("online_judge.slots.devices.memory_bytes", memory_bytes)
    judge = SimpleNamespace(
        machine=machine,
        settings=Settings(),
        fork_client=SimpleNamespace(software=SimpleNamespace(versions={}), in_force=None),
        scheduler=Scheduler([], 1, lambda where, job, cancelled: Verdict(status=Status.PASSED)),
    )
    app: Any = SimpleNamespace(app=SimpleNamespace(state=SimpleNamespace(judge=judge)))
    answer = asyncio.run(v1.health(app))
    assert (answer.device_count, answer.available_gpus) == (1, [0])
    assert [device.id for device in answer.devices] == [0]


def test_capacity_grows_with_the_devices() -> None:
    slots = [slot(0), slot(0), slot(1)]
    queue = group(*slots)
    assert queue.capacity == 200
    for each in slots:
        queue.dismiss(each)
    assert queue.capacity == 100


@pytest.mark.parametrize("other", ["model", "priority"])
def test_job_served_early_puts_nobody_behind(other: str) -> None:
    queue = group(slot(0), slot(1, A100))
    backlog = [job("H100", client="a") for _ in range(20)]
    early = job("A100", client="a") if other == "model" else job("H100", client="a")
    for each in (*backlog, early):
        queue.add(each)
    if other == "priority":
        queue.remove(early)
        queue.insert(early, early.rank - HEAD_START)
    while (pair := queue.pair()) is not None and pair[0] is not early:
        pass
    queue.add(new := job("H100", client="b"))
    assert queue.position(new) <= 2


def test_stuck_job_holds_up_no_other() -> None:
    queue = group(slot(0), slot(1, A100))
    queue.add(job("H100"))
    assert queue.pair() is not None  # the H100 is busy from now on
    queue.add(job("H100", client="a"))
    mine = [job("A100", client="a") for _ in range(60)]
    for each in mine:
        queue.add(each)
    for _ in range(55):
        pair = queue.pair()
        assert pair is not None
        queue.free(pair[0])
    later = [job("A100", client="b") for _ in range(100)]
    for each in later:
        queue.add(each)
    assert queue.position(mine[55]) <= 2
    assert queue.position(later[0]) <= 3
