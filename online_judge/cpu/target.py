"""The simulated GPU, and Triton's driver for it."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import SimpleNamespace

import torch
from triton.backends.compiler import GPUTarget

_GIB = 1 << 30


@dataclass(frozen=True)
class GpuModel:
    """Properties of the simulated GPU for torch and Triton's driver, in torch's names; sizes in bytes."""

    capability: int
    name: str
    multi_processor_count: int
    total_memory: int
    shared_memory_per_block_optin: int
    max_threads_per_multi_processor: int
    L2_cache_size: int

    @property
    def version(self) -> tuple[int, int]:
        return divmod(self.capability, 10)

    @property
    def target(self) -> GPUTarget:
        return GPUTarget("cuda", self.capability, 32)


_MODELS = {
    70: GpuModel(70, "Tesla V100-SXM2-32GB", 80, 32 * _GIB, 98304, 2048, 6 << 20),
    75: GpuModel(75, "Tesla T4", 40, 15 * _GIB, 65536, 1024, 4 << 20),
    80: GpuModel(80, "NVIDIA A100-SXM4-80GB", 108, 80 * _GIB, 166912, 2048, 40 << 20),
    86: GpuModel(86, "NVIDIA RTX A6000", 84, 48 * _GIB, 101376, 1536, 6 << 20),
    89: GpuModel(89, "NVIDIA L40S", 142, 46 * _GIB, 101376, 1536, 96 << 20),
    90: GpuModel(90, "NVIDIA H200", 132, 140 * _GIB, 232448, 2048, 50 << 20),
    100: GpuModel(100, "NVIDIA B200", 148, 180 * _GIB, 232448, 2048, 126 << 20),
    103: GpuModel(103, "NVIDIA B300", 148, 270 * _GIB, 232448, 2048, 126 << 20),
    120: GpuModel(120, "NVIDIA GeForce RTX 5090", 170, 32 * _GIB, 101376, 1536, 96 << 20),
}


def gpu_model(compile_target: str) -> GpuModel:
    """Return the GPU of a target such as ``sm_90``; ValueError for other forms."""
    match = re.fullmatch(r"sm_(\d{2,3})", compile_target)
    if match is None:
        raise ValueError(f"compile_target {compile_target!r}: write it as sm_XX, for example sm_90")
    capability = int(match.group(1))
    if capability in _MODELS:
        return _MODELS[capability]
    return GpuModel(capability, f"NVIDIA GPU {compile_target}", 128, 48 * _GIB, 101376, 1536, 48 << 20)


class SimulatedDriver(SimpleNamespace):
    """Triton's active driver while a GPU is simulated."""

    def __init__(self, model: GpuModel) -> None:
        properties = {  # rates in kHz, sizes in bytes
            "max_shared_mem": model.shared_memory_per_block_optin,
            "max_num_regs": 65536,
            "multiprocessor_count": model.multi_processor_count,
            "warpSize": 32,
            "sm_clock_rate": 1_700_000,
            "mem_clock_rate": 2_600_000,
            "mem_bus_width": 5120,
        }
        super().__init__(
            utils=SimpleNamespace(get_device_properties=lambda device=0: dict(properties)),
            get_current_target=lambda: model.target,
            get_current_device=lambda: 0,
            set_current_device=lambda device: None,
            get_current_stream=lambda device=0: 0,
            get_device_capability=lambda device=0: model.version,
            get_active_torch_device=lambda: torch.device("cuda", 0),
            get_device_interface=lambda: torch.cuda,
            get_benchmarker=lambda: run_once,
            get_empty_cache_for_benchmark=lambda: torch.empty(1),  # instead of one as large as the L2 cache
            clear_cache=lambda cache: None,
        )


def run_once(
    fn: Callable[[], object],
    warmup: int = 25,
    rep: int = 100,
    grad_to_none: object = None,
    quantiles: Sequence[float] | None = None,
    return_mode: str = "mean",
) -> float | list[float]:
    """``do_bench`` without a clock: call ``fn`` once and report 1 ms in the asked-for shape."""
    fn()
    if quantiles is not None:
        return [1.0] * len(quantiles) if len(quantiles) > 1 else 1.0
    return [1.0] if return_mode == "all" else 1.0
