"""What Triton's active driver answers while a GPU is simulated."""

from __future__ import annotations

from typing import Any

import torch

from online_judge.cpu import triton_access
from online_judge.cpu.target import GpuModel


class SimulatedUtils:
    """The driver's view of the device."""

    def __init__(self, model: GpuModel) -> None:
        self._model = model

    def get_device_properties(self, device: int = 0) -> dict[str, int]:
        """The properties that Triton's CUDA driver reports (rates in kHz, sizes in bytes)."""
        return {
            "max_shared_mem": self._model.shared_memory_per_block_optin,
            "max_num_regs": 65536,
            "multiprocessor_count": self._model.multi_processor_count,
            "warpSize": 32,
            "sm_clock_rate": 1_700_000,
            "mem_clock_rate": 2_600_000,
            "mem_bus_width": 5120,
        }


class SimulatedDriver:
    """Stands in for Triton's CUDA driver."""

    def __init__(self, model: GpuModel) -> None:
        self.utils = SimulatedUtils(model)
        self._model = model

    def get_current_target(self) -> Any:
        """The simulated GPU as Triton describes it."""
        return triton_access.cuda_target(self._model.capability)

    def get_current_device(self) -> int:
        """The only device."""
        return 0

    def set_current_device(self, device: int) -> None:
        """There is only one."""

    def get_current_stream(self, device: int = 0) -> int:
        """The default stream."""
        return 0

    def get_device_capability(self, device: int = 0) -> tuple[int, int]:
        """Compute capability."""
        return self._model.major, self._model.minor

    def get_active_torch_device(self) -> torch.device:
        """``cuda:0``."""
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        """The module that answers for the device."""
        return torch.cuda

    def get_benchmarker(self) -> Any:
        """The (simulated) ``triton.testing.do_bench``."""
        return run_once

    def get_empty_cache_for_benchmark(self) -> torch.Tensor:
        """A token in place of a buffer as large as the L2 cache."""
        return torch.empty(1)

    def clear_cache(self, cache: torch.Tensor) -> None:
        """Nothing to clear."""


def run_once(
    fn: Any,
    warmup: int = 25,
    rep: int = 100,
    grad_to_none: Any = None,
    quantiles: Any = None,
    return_mode: str = "mean",
) -> Any:
    """``do_bench`` without a clock: call ``fn`` once and report 1 ms in the asked-for shape."""
    fn()
    if quantiles is not None:
        return [1.0] * len(quantiles) if len(quantiles) > 1 else 1.0
    return [1.0] if return_mode == "all" else 1.0
