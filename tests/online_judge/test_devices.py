import pytest

from adaexplore.core.errors import ConfigError
from online_judge.processes.fork_client import ForkClient
from online_judge.settings import Settings
from online_judge.slots import devices


class ForkServer(ForkClient):
    """A fork client that tells of made-up GPUs."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def gpus(self) -> list[tuple[str, str]]:
        return [(f"GPU {index}", "sm_90") for index in range(self.count)]


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


def test_cuda_that_is_asked_for_but_missing_leaves_no_device() -> None:
    machine = devices.find(ForkServer(0), Settings(judge_device="cuda"))
    assert (machine.devices, machine.kind) == ((), "cuda")
