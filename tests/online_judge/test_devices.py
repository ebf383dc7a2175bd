import pytest

from adaexplore.core.environment import DeviceFacts
from adaexplore.core.errors import ConfigError
from online_judge.processes.fork_client import ForkClient
from online_judge.settings import Settings
from online_judge.slots import devices


class ForkServer(ForkClient):
    """A fork client that tells of made-up GPUs."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def gpus(self) -> list[DeviceFacts]:
        return [DeviceFacts(name=f"GPU {index}", capability="9.0") for index in range(self.count)]


@pytest.fixture(autouse=True)
def no_visible_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)


def test_all_gpus_are_used_unless_some_are_named() -> None:
    machine = devices.find(ForkServer(3), Settings())
    assert [device.id for device in machine.devices] == [0, 1, 2]
    chosen = devices.find(ForkServer(3), Settings(available_gpus=(2, 0)))
    assert [(device.id, device.visible_devices) for device in chosen.devices] == [(2, "2"), (0, "0")]
    assert (chosen.hardware, chosen.compile_target, chosen.device_count) == ("GPU 2", "sm_90", 3)


def test_numbers_count_within_the_visible_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,GPU-abc")
    machine = devices.find(ForkServer(2), Settings())
    assert [device.visible_devices for device in machine.devices] == ["4", "GPU-abc"]


@pytest.mark.parametrize(("count", "gpus"), [(2, (2,)), (2, (0, 5)), (0, (1,))])
def test_device_that_is_not_there_is_an_error(count: int, gpus: tuple[int, ...]) -> None:
    with pytest.raises(ConfigError, match="AVAILABLE_GPUS"):
        devices.find(ForkServer(count), Settings(available_gpus=gpus))


def test_cpu_is_one_device_that_is_no_gpu() -> None:
    for machine in (
        devices.find(ForkServer(0), Settings(compile_target="sm_80")),
        devices.find(ForkServer(2), Settings(judge_device="cpu", compile_target="sm_80")),
    ):
        assert (machine.cuda_available, machine.device_count) == (False, 0)
        assert [(device.id, device.kind) for device in machine.devices] == [(0, "cpu")]
        assert machine.kind == "cpu"
        assert machine.hardware == "CPU (Triton interpreter, sm_80)"


def test_requesting_missing_cuda_yields_no_device() -> None:
    machine = devices.find(ForkServer(0), Settings(judge_device="cuda"))
    assert (machine.devices, machine.kind) == ((), "cuda")


@pytest.mark.parametrize(
    ("kind", "gpus", "cores", "host_gib", "gpu_gib", "slots"),
    [
        ("cuda", 1, 16, 128, 141, 12),
        ("cuda", 1, 16, 128, 24, 3),
        ("cuda", 1, 16, 20, 80, 3),
        ("cuda", 8, 128, 2048, 80, 10),
        ("cuda", 1, 1, 4, 80, 1),
        ("cuda", 1, 16, 128, 0, 12),  # it does not tell its memory
        ("cpu", 0, 2, 24, 0, 2),
        ("cpu", 0, 64, 16, 0, 8),
    ],
)
def test_default_slots_follow_cores_and_memory(
    monkeypatch: pytest.MonkeyPatch, kind: str, gpus: int, cores: int, host_gib: int, gpu_gib: int, slots: int
) -> None:
    pages = {"SC_PHYS_PAGES": host_gib * 2**18, "SC_PAGE_SIZE": 4096}
    monkeypatch.setattr("os.sysconf", pages.__getitem__)
    monkeypatch.setattr("os.sched_getaffinity", lambda process: set(range(cores)))
    monkeypatch.setattr(devices, "memory_bytes", lambda device: {"memory_total": gpu_gib * 2**30})
    found = devices.find(ForkServer(gpus), Settings()).devices
    assert [(device.kind, device.slots) for device in found] == [(kind, slots)] * max(gpus, 1)
    told = devices.find(ForkServer(gpus), Settings(max_concurrent_evals=24)).devices
    assert {device.slots for device in told} == {24}


@pytest.mark.parametrize(("kind", "count"), [("cpu", 0), ("cuda", 1)])
def test_only_cluster_gpus_count_as_cuda_devices(kind: devices.DeviceKind, count: int) -> None:
    machine = devices.Machine(False, 0, (), "sm_90", elastic=True)
    machine.join(devices.Device(0, kind, "", "x"))
    assert (machine.cuda_available, machine.device_count) == (kind == "cuda", count)
    machine.leave(devices.Device(0, kind, "", "x"))
    assert machine.device_count == 0


def test_cluster_without_devices_says_why() -> None:
    machine = devices.Machine(False, 0, (), "sm_90", elastic=True)
    assert machine.absence.startswith("no worker of the Ray cluster is ready")
    machine.unreachable = "the Ray cluster at a:1 is not reachable"
    assert machine.absence == "the Ray cluster at a:1 is not reachable"
    machine.join(devices.Device(0, "cuda", "", "x"))
    assert machine.absence == ""
