"""``torch.cuda`` and its neighbours as they answer on the simulated GPU."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import torch
import torch.amp.autocast_mode
import torch.cuda

from online_judge.cpu.launching import not_checked
from online_judge.cpu.patching import Patches
from online_judge.cpu.target import GpuModel


class SimulatedStream:
    """A stream on which everything is already done."""

    cuda_stream = 0
    stream_id = 0
    device_index = 0
    priority = 0

    def __init__(self, device: Any = None, priority: int = 0, **_: Any) -> None:
        self.device = torch.device("cuda", 0)

    def query(self) -> bool:
        """Always finished."""
        return True

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def wait_stream(self, stream: Any) -> None:
        """Nothing to wait for."""

    def wait_event(self, event: Any) -> None:
        """Nothing to wait for."""

    def record_event(self, event: Any = None) -> SimulatedEvent:
        """Record an event now."""
        recorded: SimulatedEvent = SimulatedEvent() if event is None else event
        recorded.record(self)
        return recorded

    def __enter__(self) -> SimulatedStream:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


class SimulatedEvent:
    """An event that is reached when it is recorded."""

    def __init__(
        self, enable_timing: bool = False, blocking: bool = False, interprocess: bool = False
    ) -> None:
        self._time_s = time.perf_counter()

    def record(self, stream: Any = None) -> None:
        """Take the time."""
        self._time_s = time.perf_counter()

    def query(self) -> bool:
        """Always reached."""
        return True

    def wait(self, stream: Any = None) -> None:
        """Nothing to wait for."""

    def synchronize(self) -> None:
        """Nothing to wait for."""

    def elapsed_time(self, end: SimulatedEvent) -> float:
        """Milliseconds of the interpreter between two events; claims nothing."""
        return (end._time_s - self._time_s) * 1000.0


class _Context:
    """``torch.cuda.device`` and its kin: there is one device, and it is current."""

    def __init__(self, *_: Any, **__: Any) -> None:
        self.idx = 0

    def __enter__(self) -> _Context:
        return self

    def __exit__(self, *_: Any) -> None:
        return None


class SimulatedGenerator(torch.Generator):  # type: ignore[misc]
    """A CPU generator that may be asked for on ``cuda``."""

    def __new__(cls, device: Any = "cpu") -> SimulatedGenerator:
        """Create the generator on the CPU."""
        return cast(SimulatedGenerator, super().__new__(cls, "cpu"))

    def __init__(self, device: Any = "cpu") -> None:
        self._asked_for = torch.device(device)

    @property
    def device(self) -> torch.device:
        """The device that was asked for."""
        return torch.device("cuda", 0) if self._asked_for.type == "cuda" else self._asked_for


def install(patches: Patches, model: GpuModel) -> None:
    """Make torch describe and use the simulated GPU until the patches are restored."""
    for name, value in _answers(model).items():
        patches.set(torch.cuda, name, value)
    for name, value in {
        "Stream": SimulatedStream,
        "ExternalStream": SimulatedStream,
        "Event": SimulatedEvent,
        "device": _Context,
        "device_of": _Context,
        "stream": _Context,
        "StreamContext": _Context,
        "CUDAGraph": not_checked("CUDA graphs cannot run without a GPU"),
        "graph": not_checked("CUDA graphs cannot run without a GPU"),
        "make_graphed_callables": not_checked("CUDA graphs cannot run without a GPU"),
    }.items():
        patches.set(torch.cuda, name, value)
    patches.set(torch, "compile", not_checked("torch.compile cannot target a GPU that is not there"))
    patches.set(torch, "Generator", SimulatedGenerator)
    patches.set(torch.version, "cuda", torch.version.cuda or "12.8")
    patches.set(
        torch.amp.autocast_mode.autocast, "__init__", _autocast(torch.amp.autocast_mode.autocast.__init__)
    )
    patches.set(torch._C, "_cuda_getCurrentRawStream", lambda device=0: 0)
    silent = {"range_push": lambda message: 0, "range_pop": lambda: 0, "mark": lambda message: None}
    for name, marker in silent.items():
        patches.set(torch.cuda.nvtx, name, marker)
    patches.set(torch.cuda.nvtx, "range", lambda *args, **kwargs: contextlib.nullcontext())
    if hasattr(torch, "accelerator"):
        patches.set(torch.accelerator, "is_available", lambda: True)
        patches.set(torch.accelerator, "device_count", lambda: 1)
        patches.set(
            torch.accelerator, "current_accelerator", lambda check_available=False: torch.device("cuda")
        )
        patches.set(torch.accelerator, "synchronize", lambda device=None: None)
    patches.set(torch.backends.cuda, "is_built", lambda: True)
    patches.set(torch.backends.cudnn, "is_available", lambda: True)
    patches.set(torch.backends.cudnn, "version", lambda: 90000)


def _answers(model: GpuModel) -> dict[str, Callable[..., Any]]:
    properties = SimpleNamespace(
        name=model.name,
        major=model.major,
        minor=model.minor,
        total_memory=model.total_memory,
        multi_processor_count=model.multi_processor_count,
        max_threads_per_multi_processor=model.threads_per_multi_processor,
        max_threads_per_block=1024,
        warp_size=32,
        regs_per_multiprocessor=65536,
        shared_memory_per_block=49152,
        shared_memory_per_block_optin=model.shared_memory_per_block_optin,
        shared_memory_per_multiprocessor=model.shared_memory_per_block_optin + 1024,
        L2_cache_size=model.l2_cache_size,
        is_integrated=0,
        is_multi_gpu_board=0,
        gcnArchName="",
        uuid="",
        clock_rate=1_700_000,
        memory_clock_rate=2_600_000,
        memory_bus_width=5120,
    )
    stream = SimulatedStream()
    constants: dict[str, Any] = {
        "is_available": True,
        "is_initialized": True,
        "is_bf16_supported": model.major >= 8,
        "is_tf32_supported": model.major >= 8,
        "device_count": 1,
        "current_device": 0,
        "get_device_name": model.name,
        "get_device_capability": (model.major, model.minor),
        "get_device_properties": properties,
        "get_arch_list": [f"sm_{model.capability}"],
        "current_stream": stream,
        "default_stream": stream,
        "is_current_stream_capturing": False,
        "memory_allocated": 0,
        "max_memory_allocated": 0,
        "memory_reserved": 0,
        "max_memory_reserved": 0,
        "mem_get_info": (model.total_memory, model.total_memory),
        "utilization": 0,
        "initial_seed": 0,
    }
    nothing = (
        "init",
        "_lazy_init",
        "set_device",
        "set_stream",
        "synchronize",
        "empty_cache",
        "ipc_collect",
        "reset_peak_memory_stats",
        "reset_max_memory_allocated",
        "reset_max_memory_cached",
        "reset_accumulated_memory_stats",
        "set_per_process_memory_fraction",
        "set_rng_state",
        "set_rng_state_all",
        "seed",
        "seed_all",
        "cudart",
    )
    answers: dict[str, Callable[..., Any]] = {name: _constant(value) for name, value in constants.items()}
    answers.update({name: _constant(None) for name in nothing})
    answers["manual_seed"] = answers["manual_seed_all"] = lambda seed: torch.default_generator.manual_seed(
        seed
    )
    answers["get_rng_state"] = lambda device=None: torch.get_rng_state()
    return answers


def _seed(seed: int) -> None:
    torch.default_generator.manual_seed(seed)


def _rng_state(device: Any = None) -> torch.Tensor:
    return torch.get_rng_state()


def _constant(value: Any) -> Callable[..., Any]:
    return lambda *args, **kwargs: value


def _autocast(original: Callable[..., None]) -> Callable[..., None]:
    """CUDA autocast becomes CPU autocast with CUDA's default type."""

    def __init__(  # noqa: N807
        self: Any, device_type: str, dtype: Any = None, enabled: bool = True, cache_enabled: Any = None
    ) -> None:
        if str(device_type).startswith("cuda"):
            device_type, dtype = "cpu", dtype or torch.float16
        original(self, device_type, dtype, enabled, cache_enabled)

    return __init__
