"""Read the clocks, temperature and processes of a GPU around a measurement."""

from __future__ import annotations

import importlib
import logging
import subprocess
from functools import cache
from typing import Any

from online_judge.protocol.measurement import GpuState

log = logging.getLogger(__name__)

_SMI_S = 5.0
_SMI_FIELDS = ("clocks.sm", "clocks.mem", "temperature.gpu", "power.draw")
_SMI_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # newer and older name


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
