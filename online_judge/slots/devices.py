"""Find the devices that the judge serves."""

import logging
import os
import subprocess
from dataclasses import dataclass, field, replace

from adaexplore.core.environment import DeviceFacts
from adaexplore.core.errors import ConfigError
from adaexplore.core.wire import DeviceKind
from online_judge.common.cores import ANY_CORE, Cores, share_out
from online_judge.processes.fork_client import ForkClient
from online_judge.settings import Settings

log = logging.getLogger(__name__)

_SMI_S = 10.0
_MIB, _GIB = 2**20, 2**30
_CORES_PER_SLOT = {"cpu": 1.0, "cuda": 4 / 3}  # on a GPU some are reserved for compiling and timing
_MEMORY_PER_SLOT = {"cpu": 2 * _GIB, "cuda": 6 * _GIB}  # of the host: an evaluator and a candidate
_GPU_MEMORY_PER_SLOT = 8 * _GIB  # for contexts and the tensors of most problems; larger ones run alone


@dataclass(frozen=True)
class Device:
    id: int  # its number for clients
    kind: DeviceKind
    visible_devices: str  # value of ``CUDA_VISIBLE_DEVICES`` for processes that use it
    hardware: str  # its name
    cores: Cores = ANY_CORE  # CPU cores for its processes
    slots: int = 1  # number of evaluations at a time
    facts: DeviceFacts | None = None  # None without a GPU
    node: str = ""  # name of its machine; empty for this one


@dataclass
class Machine:
    """The devices that the judge found; on a cluster devices join and leave."""

    cuda_available: bool  # evaluations run on CUDA devices
    device_count: int  # all CUDA devices of the machine
    devices: tuple[Device, ...]  # the used ones; the single CPU device without CUDA
    compile_target: str  # compile target of kernels
    elastic: bool = False  # devices join and leave; jobs wait while there are none
    awaited: bool = False  # a worker is starting or lost, so another model may join
    unreachable: str = ""  # why no device can join; empty if the cluster answers
    known: dict[str, Device] = field(default_factory=dict)  # a device that has joined, by hardware

    def join(self, device: Device) -> None:
        self.known[device.hardware] = device
        self.devices = (*self.devices, device)
        self.cuda_available = self.kind == "cuda"
        self.device_count = len(self.devices) if self.cuda_available else 0

    def leave(self, device: Device) -> None:
        self.devices = tuple(other for other in self.devices if other.id != device.id)
        self.device_count = len(self.devices) if self.cuda_available else 0

    @property
    def absence(self) -> str:
        """Why no device takes jobs now; empty if one does."""
        if self.devices:
            return ""
        if not self.elastic:
            return "no device"
        return self.unreachable or "no worker of the Ray cluster is ready; /v2/workers lists them"

    @property
    def kind(self) -> DeviceKind:
        """The devices' kind; ``cuda`` also if a GPU is required but missing."""
        return self._sample.kind if self._sample is not None else "cuda"

    @property
    def hardware(self) -> str:
        return self._sample.hardware if self._sample is not None else "none"

    @property
    def _sample(self) -> Device | None:
        return next(iter((*self.devices, *self.known.values())), None)


def find(fork_client: ForkClient, settings: Settings) -> Machine:
    """Look for devices; raises ConfigError if ``AVAILABLE_GPUS`` names one that is not there."""
    gpus = [] if settings.judge_device == "cpu" else fork_client.gpus()
    if not gpus and settings.judge_device == "cuda":
        log.error("JUDGE_DEVICE is cuda but there is no CUDA device: evaluations are refused")
        return Machine(False, 0, (), settings.compile_target)
    wanted = settings.available_gpus
    count = len(gpus) or 1
    outside = [index for index in wanted or () if index >= count]
    if outside:
        here = f"the devices here are 0..{count - 1}" if gpus else "the only device here is the CPU, number 0"
        raise ConfigError(
            f"AVAILABLE_GPUS (gpu_ids of a run) names device {outside[0]}, but {here}; correct or unset it"
        )
    if not gpus:
        cpu = Device(0, "cpu", "", f"CPU (Triton interpreter, {settings.compile_target})")
        return Machine(False, 0, (replace(cpu, slots=slots(cpu, settings, 1)),), settings.compile_target)
    visible = os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",")
    names = visible if len(visible) == len(gpus) and all(visible) else [str(i) for i in range(len(gpus))]
    indices = range(len(gpus)) if wanted is None else wanted
    numbers = [int(names[index]) if names[index].strip().isdecimal() else index for index in indices]
    cores = share_out(os.sched_getaffinity(0), numbers)
    found = [
        Device(index, "cuda", names[index].strip(), gpus[index].name, own, facts=gpus[index])
        for index, own in zip(indices, cores, strict=True)
    ]
    devices = tuple(replace(device, slots=slots(device, settings, len(found))) for device in found)
    return Machine(True, len(gpus), devices, gpus[0].target)


def slots(device: Device, settings: Settings, devices: int) -> int:
    """Return how many evaluations each of the machine's ``devices`` takes at a time.

    The number is ``MAX_CONCURRENT_EVALS`` if set, else as many as cores and memory allow.
    """
    if settings.max_concurrent_evals:
        return settings.max_concurrent_evals
    host = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [
        len(os.sched_getaffinity(0)) / devices / _CORES_PER_SLOT[device.kind],
        host / devices / _MEMORY_PER_SLOT[device.kind],
    ]
    if device.kind == "cuda" and (memory := memory_bytes(device)["memory_total"]):
        limits.append(memory / _GPU_MEMORY_PER_SLOT)
    return max(int(min(limits)), 1)


def memory_bytes(device: Device) -> dict[str, int]:
    """Ask nvidia-smi for total and used memory of a GPU; zeros if it does not answer.

    A GPU of another machine is not queried: only its total is known.
    """
    if device.node:
        total = (device.facts and device.facts.memory_bytes) or 0
        return {"memory_total": total, "memory_allocated": 0, "memory_reserved": 0}
    total = used = 0
    try:
        total, used = (part * _MIB for part in smi(device, "memory.total,memory.used"))
    except (OSError, subprocess.SubprocessError, ValueError, IndexError) as error:
        log.warning("nvidia-smi does not report the memory of device %d: %s", device.id, error)
    return {"memory_total": total, "memory_allocated": used, "memory_reserved": used}


def smi(device: Device, fields: str) -> list[int]:
    """Query nvidia-smi about a GPU; return numbers without units.

    Raises:
        OSError, subprocess.SubprocessError, ValueError, IndexError: there is no answer in numbers.
    """
    query = [f"--query-gpu={fields}", "--format=csv,noheader,nounits"]
    command = ["nvidia-smi", f"--id={device.visible_devices}", *query]
    answer = subprocess.run(command, capture_output=True, text=True, timeout=_SMI_S, check=True)
    return [int(part) for part in answer.stdout.strip().splitlines()[0].split(",")]
