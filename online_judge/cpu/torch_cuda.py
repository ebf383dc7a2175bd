"""Answers of ``torch.cuda`` and related modules on the simulated GPU."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Self, cast

import torch
import torch.amp.autocast_mode
import torch.cuda

from online_judge.cpu.errors import not_checked
from online_judge.cpu.patching import Patches
from online_judge.cpu.target import GpuModel

_RETURN_NONE = (
    "init", "_lazy_init", "set_device", "set_stream", "synchronize", "empty_cache", "ipc_collect", "cudart",
    "reset_peak_memory_stats", "reset_max_memory_allocated", "reset_max_memory_cached", "seed", "seed_all",
    "reset_accumulated_memory_stats", "set_per_process_memory_fraction", "set_rng_state", "set_rng_state_all",
)  # fmt: skip
_FIXED_PROPERTIES = {
    "max_threads_per_block": 1024, "warp_size": 32, "regs_per_multiprocessor": 65536, "gcnArchName": "",
    "shared_memory_per_block": 49152, "is_integrated": 0, "is_multi_gpu_board": 0, "uuid": "",
    "clock_rate": 1_700_000, "memory_clock_rate": 2_600_000, "memory_bus_width": 5120,
}  # fmt: skip


def _constant(value: object) -> Callable[..., object]:
    """Return a new function; torch's compiler does not accept one function under several names."""
    return lambda *args, **kwargs: value


class _Context:
    """``torch.cuda.device`` and the like: there is one device, and it is current."""

    idx = 0

    def __init__(self, *_: object, **__: object) -> None:
        pass

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        return None


class SimulatedStream(_Context):
    """A stream on which everything is already done."""

    cuda_stream = stream_id = device_index = priority = 0
    device = torch.device("cuda", 0)
    query = _constant(True)
    synchronize = wait_stream = wait_event = _constant(None)

    def record_event(self, event: SimulatedEvent | None = None) -> SimulatedEvent:
        recorded = SimulatedEvent() if event is None else event
        recorded.record(self)
        return recorded


class SimulatedEvent:
    """An event that is reached when it is recorded."""

    query = _constant(True)
    wait = synchronize = _constant(None)

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self.record()

    def record(self, stream: SimulatedStream | None = None) -> None:
        self._time_s = time.perf_counter()

    def elapsed_time(self, end: SimulatedEvent) -> float:
        """Return milliseconds of the interpreter between two events; they say nothing about a GPU."""
        return (end._time_s - self._time_s) * 1000.0


class SimulatedGenerator(torch.Generator):  # type: ignore[misc]
    """A CPU generator that can be requested for ``cuda``."""

    def __new__(cls, device: object = "cpu") -> SimulatedGenerator:
        return cast(SimulatedGenerator, super().__new__(cls, "cpu"))

    def __init__(self, device: object = "cpu") -> None:
        asked_for = torch.device(device)
        self._device = torch.device("cuda", 0) if asked_for.type == "cuda" else asked_for

    @property
    def device(self) -> torch.device:
        return self._device


def install(patches: Patches, model: GpuModel) -> None:
    """Make torch describe and use the simulated GPU until the patches are undone."""
    no_graphs = "CUDA graphs cannot run without a GPU"
    autocast, cudnn = torch.amp.autocast_mode.autocast, torch.backends.cudnn
    silent = {"range_push": 0, "range_pop": 0, "mark": None, "range": contextlib.nullcontext()}
    accelerator = {"is_available": True, "device_count": 1, "synchronize": None}
    replaced: dict[object, dict[str, object]] = {
        torch.cuda: {
            **{name: _constant(value) for name, value in _answers(model).items()},
            **{name: _constant(None) for name in _RETURN_NONE},
            **dict.fromkeys(("manual_seed", "manual_seed_all"), _manual_seed),
            "get_rng_state": lambda device=None: torch.get_rng_state(),
            **dict.fromkeys(("Stream", "ExternalStream"), SimulatedStream),
            "Event": SimulatedEvent,
            **dict.fromkeys(("device", "device_of", "stream", "StreamContext", "_DeviceGuard"), _Context),
            **{name: not_checked(no_graphs) for name in ("CUDAGraph", "graph", "make_graphed_callables")},
        },
        torch.cuda.nvtx: {name: _constant(value) for name, value in silent.items()},
        torch.accelerator: {
            **{name: _constant(value) for name, value in accelerator.items()},
            "current_accelerator": lambda check_available=False: torch.device("cuda"),
        },
        torch: {
            "compile": not_checked("torch.compile cannot target a GPU that is not there"),
            "Generator": SimulatedGenerator,
        },
        torch.version: {"cuda": torch.version.cuda or "12.8"},
        torch._C: {"_cuda_getCurrentRawStream": lambda device=0: 0},
        torch._C._dynamo.guards: {"_empty_strided_cuda": _empty_strided},  # as torch's compiler writes it
        torch.backends.cuda: {"is_built": lambda: True},
        cudnn: {
            "is_available": lambda: True,
            "version": lambda: 90000,
            "is_acceptable": lambda tensor: False,  # it computes nothing here
        },
        autocast: {"__init__": _autocast(autocast.__init__)},
    }
    for owner, values in replaced.items():
        for name, value in values.items():
            patches.set(owner, name, value)


def _answers(model: GpuModel) -> dict[str, object]:
    """Return the constant answers of ``torch.cuda``'s functions."""
    major, minor = model.version
    properties = SimpleNamespace(
        **{name: value for name, value in vars(model).items() if name != "capability"},
        major=major,
        minor=minor,
        **_FIXED_PROPERTIES,
        shared_memory_per_multiprocessor=model.shared_memory_per_block_optin + 1024,
    )
    memory = ("memory_allocated", "max_memory_allocated", "memory_reserved", "max_memory_reserved")
    return {
        **dict.fromkeys(("is_available", "is_initialized"), True),
        **dict.fromkeys(("is_bf16_supported", "is_tf32_supported"), major >= 8),
        "device_count": 1,
        "get_device_name": model.name,
        "get_device_capability": model.version,
        "get_device_properties": properties,
        "get_arch_list": [f"sm_{model.capability}"],
        **dict.fromkeys(("current_stream", "default_stream"), SimulatedStream()),
        "is_current_stream_capturing": False,
        **dict.fromkeys((*memory, "current_device", "utilization", "initial_seed"), 0),
        "mem_get_info": (model.total_memory, model.total_memory),
    }


def _empty_strided(size: Sequence[int], stride: Sequence[int], dtype: torch.dtype) -> torch.Tensor:
    return torch.empty_strided(size, stride, dtype=dtype, device="cuda")


def _manual_seed(seed: int) -> torch.Generator:
    return torch.default_generator.manual_seed(seed)


def _autocast(original: Callable[..., None]) -> Callable[..., None]:
    """Turn CUDA autocast into CPU autocast with CUDA's default type."""

    def __init__(  # noqa: N807
        self: object,
        device_type: str,
        dtype: object = None,
        enabled: bool = True,
        cache_enabled: object = None,
    ) -> None:
        if str(device_type).startswith("cuda"):
            device_type, dtype = "cpu", dtype or torch.float16
        original(self, device_type, dtype, enabled, cache_enabled)

    return __init__
