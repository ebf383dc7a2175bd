"""A GPU's clocks are read through NVML or nvidia-smi, and lower clocks are noted."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from online_judge.checks.timing.throttling import GpuState, GpuStates
from online_judge.evaluator.timing import gpu_state
from online_judge.evaluator.timing.gpu_state import snapshot
from online_judge.verdict import flags

WARM = GpuState(sm_mhz=1980, memory_mhz=3201, temperature_c=60, power_w=500.0, reasons=0, processes=2)


class NvmlError(Exception):
    pass


class FakeNvml:
    """The bindings' functions that are used, with one GPU."""

    NVMLError = NvmlError
    NVML_CLOCK_SM = 1
    NVML_CLOCK_MEM = 2
    NVML_TEMPERATURE_GPU = 0

    def __init__(self, *, works: bool = True) -> None:
        self.works = works
        self.asked: list[object] = []

    def nvmlInit(self) -> None:
        if not self.works:
            raise NvmlError("driver not loaded")

    def nvmlDeviceGetHandleByIndex(self, index: int) -> str:
        self.asked.append(index)
        if index > 0:
            raise NvmlError("invalid argument")
        return "handle"

    def nvmlDeviceGetHandleByUUID(self, uuid: str) -> str:
        self.asked.append(uuid)
        return "handle"

    def nvmlDeviceGetClockInfo(self, handle: str, kind: int) -> int:
        return {1: 1980, 2: 3201}[kind]

    def nvmlDeviceGetTemperature(self, handle: str, sensor: int) -> int:
        return 60

    def nvmlDeviceGetPowerUsage(self, handle: str) -> int:
        return 500_000

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle: str) -> int:
        return 0

    def nvmlDeviceGetComputeRunningProcesses(self, handle: str) -> list[object]:
        return [object(), object()]


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    gpu_state._nvml.cache_clear()
    gpu_state._handle.cache_clear()
    yield
    gpu_state._nvml.cache_clear()
    gpu_state._handle.cache_clear()


def use_nvml(monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml | None) -> None:
    monkeypatch.setitem(sys.modules, "pynvml", nvml)  # type: ignore[arg-type]


def use_smi(monkeypatch: pytest.MonkeyPatch, answers: dict[str, str]) -> None:
    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        for part, answer in answers.items():
            if part in command[2]:
                return subprocess.CompletedProcess(command, 0, stdout=answer, stderr="")
        raise subprocess.CalledProcessError(2, command)

    monkeypatch.setattr("online_judge.evaluator.timing.gpu_state.subprocess.run", run)


@pytest.mark.parametrize(("device", "asked"), [("0", 0), ("GPU-1234", "GPU-1234")])
def test_nvml_is_asked_by_number_or_uuid(monkeypatch: pytest.MonkeyPatch, device: str, asked: object) -> None:
    nvml = FakeNvml()
    use_nvml(monkeypatch, nvml)
    assert snapshot(device) == WARM
    assert snapshot(device) == WARM
    assert nvml.asked == [asked]


def test_gpu_unknown_to_nvml_has_no_state(monkeypatch: pytest.MonkeyPatch) -> None:
    use_nvml(monkeypatch, FakeNvml())
    assert snapshot("7") is None


@pytest.mark.parametrize("nvml", [None, FakeNvml(works=False)])
@pytest.mark.parametrize("reasons", ["clocks_event_reasons", "clocks_throttle_reasons"])
def test_smi_answers_where_nvml_does_not(
    monkeypatch: pytest.MonkeyPatch, nvml: FakeNvml | None, reasons: str
) -> None:
    use_nvml(monkeypatch, nvml)
    line = "1980, 3201, 60, 500.00, 0x0000000000000004\n"
    use_smi(monkeypatch, {reasons: line, "compute-apps": "12\n13\n"})
    state = snapshot("0")
    assert state == replace(WARM, reasons=4)
    assert state.slowdowns == ("power cap",)


@pytest.mark.parametrize("line", ["", "[N/A], 3201, 60, 1.0, 0x0\n", "No devices were found\n"])
def test_no_answer_is_none(monkeypatch: pytest.MonkeyPatch, line: str) -> None:
    use_nvml(monkeypatch, None)
    use_smi(monkeypatch, {"query-gpu": line})
    assert snapshot("0") is None
    monkeypatch.undo()
    use_nvml(monkeypatch, None)
    monkeypatch.setenv("PATH", "")
    assert snapshot("0") is None


@pytest.mark.parametrize(
    ("after", "evidence"),
    [
        (replace(WARM, reasons=0x40), "hardware thermal slowdown: SM 1980 MHz, 60 C, 500 W"),
        (replace(WARM, reasons=0x24), "power cap, software thermal slowdown: SM 1980 MHz, 60 C, 500 W"),
        (
            replace(WARM, sm_mhz=1500),
            "from SM 1980 MHz, memory 3201 MHz to memory 3201 MHz, SM 1500 MHz, 60 C, 500 W",
        ),
        (
            replace(WARM, memory_mhz=1593),
            "from SM 1980 MHz, memory 3201 MHz to memory 1593 MHz, SM 1980 MHz, 60 C, 500 W",
        ),
    ],
)
def test_lower_clocks_are_noted(after: GpuState, evidence: str) -> None:
    (flag,) = flags.of_candidate([GpuStates(before=WARM, after=after)], "/job")
    assert (flag.id, flag.evidence) == ("throttled", evidence)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (WARM, WARM),
        (WARM, None),
        (None, WARM),
        (replace(WARM, sm_mhz=345), WARM),
        (WARM, replace(WARM, sm_mhz=345, reasons=1)),
        (WARM, replace(WARM, sm_mhz=1900, reasons=2)),
    ],
)
def test_same_or_idle_clocks_are_not(before: GpuState | None, after: GpuState | None) -> None:
    assert flags.of_candidate([GpuStates(before=before, after=after)], "/job") == []


def test_state_is_plain_data() -> None:
    assert replace(WARM, reasons=8).to_json() == {
        "sm_mhz": 1980,
        "memory_mhz": 3201,
        "temperature_c": 60,
        "power_w": 500.0,
        "reasons": 8,
        "processes": 2,
        "slowdowns": ["hardware slowdown"],
    }
