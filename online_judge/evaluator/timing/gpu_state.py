"""Clocks, temperature and company of a GPU around a measurement; reads only, changes nothing."""

from __future__ import annotations

import importlib
import logging
import subprocess
from dataclasses import asdict, dataclass
from functools import cache
from typing import Any

from online_judge.verdict.flags import Flag

log = logging.getLogger(__name__)

_SMI_S = 5.0
_DROP = 0.9
# bits of NVML's clocks event reasons; idle, application clocks and sync boost slow nothing down unasked
_SLOWDOWNS = {
    0x04: "power cap",
    0x08: "hardware slowdown",
    0x20: "software thermal slowdown",
    0x40: "hardware thermal slowdown",
    0x80: "power brake",
}
_IDLE = 0x01
_SMI_FIELDS = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")
_SMI_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # newer and older name


@dataclass(frozen=True)
class GpuState:
    """One look at a GPU.

    Attributes:
        sm_mhz: clock of the multiprocessors.
        memory_mhz: clock of the memory.
        temperature_c: of the chip.
        power_w: drawn.
        reasons: NVML's bit mask of why the clocks are not higher.
        processes: compute processes on it, the judge's own included.
    """

    sm_mhz: int
    memory_mhz: int
    temperature_c: int
    power_w: float
    reasons: int
    processes: int

    @property
    def slowdowns(self) -> tuple[str, ...]:
        """Why the GPU runs slower than it was asked to."""
        return tuple(name for bit, name in _SLOWDOWNS.items() if self.reasons & bit)

    def to_json(self) -> dict[str, Any]:
        """For verdicts and results."""
        return {**asdict(self), "slowdowns": list(self.slowdowns)}


def snapshot(visible_device: str) -> GpuState | None:
    """The state of a GPU now; None where nothing tells it.

    A few milliseconds with the package nvidia-ml-py, some hundred through ``nvidia-smi`` without it.

    Args:
        visible_device: its number or UUID, as ``CUDA_VISIBLE_DEVICES`` names it.
    """
    nvml = _nvml()
    if nvml is None:
        return _from_smi(visible_device)
    try:
        return _from_nvml(nvml, visible_device)
    except nvml.NVMLError as error:
        log.debug("NVML does not tell the state of device %s: %s", visible_device, error)
        return None


def throttled(before: GpuState | None, after: GpuState | None) -> Flag | None:
    """The note that clocks went down between two looks, the second taken while the GPU is still busy."""
    if after is None:
        return None
    clocks = f"SM {after.sm_mhz} MHz, {after.temperature_c} C, {after.power_w:.0f} W"
    if after.slowdowns:
        return Flag("throttled", f"{', '.join(after.slowdowns)}: {clocks}")
    if before is None or after.reasons & _IDLE or before.reasons & _IDLE:
        return None
    if after.sm_mhz < _DROP * before.sm_mhz or after.memory_mhz < _DROP * before.memory_mhz:
        was = f"SM {before.sm_mhz} MHz, memory {before.memory_mhz} MHz"
        return Flag("throttled", f"from {was} to memory {after.memory_mhz} MHz, {clocks}")
    return None


@cache
def _nvml() -> Any:
    """The initialised NVML bindings; None where there are none."""
    try:
        nvml = importlib.import_module("pynvml")
    except ImportError:
        return None
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as error:
        log.debug("NVML does not start: %s", error)
        return None
    return nvml


@cache
def _handle(nvml: Any, device: str) -> Any:
    if device.isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(device))
    return nvml.nvmlDeviceGetHandleByUUID(device)


def _from_nvml(nvml: Any, device: str) -> GpuState:
    handle = _handle(nvml, device)
    name = "nvmlDeviceGetCurrentClocksEventReasons"  # the older bindings know only the other one
    reasons = getattr(nvml, name, None) or nvml.nvmlDeviceGetCurrentClocksThrottleReasons
    return GpuState(
        sm_mhz=int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM)),
        memory_mhz=int(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM)),
        temperature_c=int(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU)),
        power_w=nvml.nvmlDeviceGetPowerUsage(handle) / 1000.0,
        reasons=int(reasons(handle)),
        processes=len(nvml.nvmlDeviceGetComputeRunningProcesses(handle)),
    )


def _from_smi(device: str) -> GpuState | None:
    for reasons in _SMI_REASONS:
        line = _smi(device, f"--query-gpu={','.join((*_SMI_FIELDS, reasons))}")
        parts = line[0].split(",") if line else []
        if len(parts) == len(_SMI_FIELDS) + 1:
            try:
                return GpuState(
                    sm_mhz=int(parts[0]),
                    memory_mhz=int(parts[1]),
                    temperature_c=int(parts[2]),
                    power_w=float(parts[3]),
                    reasons=int(parts[4], 16),
                    processes=len(_smi(device, "--query-compute-apps=pid") or []),
                )
            except ValueError:  # such as [N/A]
                continue
    return None


def _smi(device: str, query: str) -> list[str] | None:
    command = ["nvidia-smi", f"--id={device}", query, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return None
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()]
