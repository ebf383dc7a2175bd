"""The GPU that the simulation pretends to be."""

from __future__ import annotations

import re
from dataclasses import dataclass

_GIB = 1 << 30


@dataclass(frozen=True)
class GpuModel:
    """What ``torch.cuda.get_device_properties`` and Triton's driver say about the simulated GPU."""

    capability: int
    name: str
    multi_processor_count: int
    total_memory: int
    shared_memory_per_block_optin: int
    threads_per_multi_processor: int
    l2_cache_size: int

    @property
    def major(self) -> int:
        """First number of the compute capability."""
        return self.capability // 10

    @property
    def minor(self) -> int:
        """Second number of the compute capability."""
        return self.capability % 10


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
    """The model behind a target such as ``sm_90``.

    Raises:
        ValueError: the target is not of the form ``sm_XX``.
    """
    match = re.fullmatch(r"sm_(\d{2,3})", compile_target)
    if match is None:
        raise ValueError(f"compile_target {compile_target!r}: write it as sm_XX, for example sm_90")
    capability = int(match.group(1))
    if capability in _MODELS:
        return _MODELS[capability]
    return GpuModel(capability, f"NVIDIA GPU {compile_target}", 128, 48 * _GIB, 101376, 1536, 48 << 20)
