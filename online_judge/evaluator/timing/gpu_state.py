"""Read the clocks, temperature and processes of a GPU around a measurement."""

from __future__ import annotations

import importlib
import logging
import subprocess
from functools import cache
from types import ModuleType

from online_judge.checks.timing.throttling import GpuState

log = logging.getLogger(__name__)

_SMI_S = 5.0
_SMI_FIELDS = "clocks.sm,clocks.mem,temperature.gpu,power.draw"
_SMI_REASONS = ("clocks_event_reasons.active", "clocks_throttle_reasons.active")  # newer and older name


def snapshot(visible_device: str) -> GpuState | None:
    """Return the state of a GPU, given by number or UUID; None if it cannot be read.

    Takes a few milliseconds with the package nvidia-ml-py, some hundred through ``nvidia-smi``.
    """
    nvml = _nvml()
    if nvml is None:
        return _from_smi(visible_device)
    try:
        return _from_nvml(nvml, visible_device)
    except nvml.NVMLError as error:
        log.debug("NVML cannot read the state of device %s: %s", visible_device, error)
        return None


@cache
def _nvml() -> ModuleType | None:
    """Return the initialised NVML bindings; None if there are none."""
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
def _handle(nvml: ModuleType, device: str) -> object:
    if device.isdigit():
        return nvml.nvmlDeviceGetHandleByIndex(int(device))
    return nvml.nvmlDeviceGetHandleByUUID(device)


def _from_nvml(nvml: ModuleType, device: str) -> GpuState:
    handle = _handle(nvml, device)
    name = "nvmlDeviceGetCurrentClocksEventReasons"  # older bindings have only the other function
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
        answer = _smi(device, f"--query-gpu={_SMI_FIELDS},{reasons}")
        try:
            sm, memory, temperature, power, active = "".join(answer[:1]).split(",")
            processes = len(_smi(device, "--query-compute-apps=pid"))
            return GpuState(int(sm), int(memory), int(temperature), float(power), int(active, 16), processes)
        except ValueError:  # no answer, or [N/A]
            continue
    return None


def _smi(device: str, query: str) -> list[str]:
    command = ["nvidia-smi", f"--id={device}", query, "--format=csv,noheader,nounits"]
    try:
        answer = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_S, check=True)
    except (OSError, subprocess.SubprocessError):
        return []
    return [line for line in answer.stdout.splitlines() if line.strip()]
