"""Peak rates of GPUs: memory bandwidth, operations a second, L2 cache."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

from adaexplore.core.wire import DtypeName, Tier

Precision = Literal["fp64", "fp32", "tf32", "half", "fp8"]

_PRECISIONS: tuple[Precision, ...] = get_args(Precision)
_MIB = 2**20


@dataclass(frozen=True)
class Peak:
    name: str  # of the device
    bytes_per_s: float  # memory bandwidth
    flops: Mapping[Precision, float]  # dense operations per second, with tensor cores if they can be used
    l2_bytes: int  # size of the L2 cache

    def precision(self, dtype: DtypeName, tier: Tier) -> tuple[Precision, float]:
        """Return the fastest arithmetic that reaches the tier, and its rate.

        Products of three TF32 or six bfloat16 terms are as exact as float32; half precision reaches
        what TF32 reaches; at the legacy tolerance 8-bit numbers may do.
        """
        flops = self.flops
        if tier == "legacy":
            return "fp8", max(flops.values())
        if dtype != "fp32" or tier in ("half", "tf32"):
            return "half", max(flops["half"], flops["tf32"], flops["fp32"])
        return "fp32", max(flops["fp32"], flops["tf32"] / 3, flops["half"] / 6)


@dataclass(frozen=True)
class _Row:
    """TB/s, L2 in MiB, and TFLOP/s for fp64, fp32, tf32, half, fp8 (8-bit integers if there is no fp8)."""

    pattern: str
    terabytes: float
    l2_mib: int
    teraflops: tuple[float, float, float, float, float]


# Dense peaks of NVIDIA's datasheets and architecture whitepapers (sparse figures halved). The first row whose
# pattern matches the device's name counts. If boards of one name differ, it holds the fastest.
_TABLE = (
    # B200 and GB200: HGX/DGX B200 and GB200 NVL72 datasheets, 2024-2025
    _Row(r"\bGB200\b", 8.0, 126, (45, 90, 1250, 2500, 5000)),
    _Row(r"\bB200\b", 8.0, 126, (45, 80, 1200, 2250, 4500)),
    # H200, GH200, H100: Hopper whitepaper and product datasheets, 2022-2024
    _Row(r"\bGH200\b", 4.9, 60, (67, 67, 494.7, 989.4, 1978.9)),
    _Row(r"\bH200\b", 4.8, 60, (67, 67, 494.7, 989.4, 1978.9)),
    _Row(r"\bH100 NVL\b", 3.94, 50, (67, 60, 417.5, 835.5, 1671)),
    _Row(r"\bH100 PCIe\b", 2.04, 50, (51, 51.2, 378, 756, 1513)),
    _Row(r"\bH100\b", 3.35, 50, (67, 67, 494.7, 989.4, 1978.9)),
    # A100: product datasheet, 2021
    _Row(r"\bA100.*40GB", 1.555, 40, (19.5, 19.5, 156, 312, 624)),
    _Row(r"\bA100\b", 2.039, 40, (19.5, 19.5, 156, 312, 624)),
    # Ada: L40S, L4 and RTX 6000 Ada datasheets, Ada whitepaper (half with fp16 accumulation)
    _Row(r"\bL40S\b", 0.864, 96, (1.4, 91.6, 183, 366, 733)),
    _Row(r"\bL4\b", 0.3, 48, (0.5, 30.3, 60, 121, 242)),
    _Row(r"\bRTX 6000 Ada\b", 0.96, 96, (1.4, 91.1, 182.1, 364.2, 728.5)),
    _Row(r"\bRTX 4090\b", 1.008, 72, (1.3, 82.6, 82.6, 330.3, 660.6)),
    # Ampere workstation and consumer: A6000 and A10 datasheets, GA102 whitepaper
    _Row(r"\bRTX A6000\b", 0.768, 6, (0.6, 38.7, 77.4, 154.8, 309.7)),
    _Row(r"\bA10\b", 0.6, 6, (0.5, 31.2, 62.5, 125, 250)),
    _Row(r"\bRTX 3090\b", 0.936, 6, (0.6, 35.6, 35.6, 142, 284)),
    # V100 and T4: product datasheets, 2018-2020
    _Row(r"\bV100\b", 1.134, 6, (8.2, 16.4, 16.4, 130, 130)),
    _Row(r"\bT4\b", 0.32, 4, (0.25, 8.1, 8.1, 65, 130)),
)

# Operations per clock and multiprocessor by compute capability: fp32 without, half with tensor cores;
# from the throughput tables of the CUDA C++ Programming Guide and the architecture whitepapers.
_PER_CLOCK = {
    (7, 0): (128, 1024),
    (7, 5): (128, 1024),
    (8, 0): (128, 2048),
    (8, 6): (256, 1024),
    (8, 9): (256, 1024),
    (9, 0): (256, 4096),
    (10, 0): (256, 8192),
}
_NEWEST = (256, 8192)


def peak(name: str, properties: object = None) -> Peak | None:
    """Return the limits of a GPU, named as by torch or NVML; None if unknown.

    For GPUs that are not in the table, ``properties`` of ``torch.cuda.get_device_properties`` are used:
    memory clock, bus width, multiprocessors, and clock in kHz.
    """
    known = next((row for row in _TABLE if re.search(row.pattern, name)), None)
    if known is not None:
        flops = {kind: 1e12 * rate for kind, rate in zip(_PRECISIONS, known.teraflops, strict=True)}
        l2_bytes = max(known.l2_mib * _MIB, int(getattr(properties, "L2_cache_size", 0) or 0))
        return Peak(name, known.terabytes * 1e12, flops, l2_bytes)
    return _derived(name, properties)


def _derived(name: str, properties: object) -> Peak | None:
    def value(field: str) -> int:
        return int(getattr(properties, field, 0) or 0)

    # two transfers per clock
    bandwidth = 2 * value("memory_clock_rate") * 1e3 * value("memory_bus_width") / 8
    cycles = value("multi_processor_count") * value("clock_rate") * 1e3
    if bandwidth <= 0 or cycles <= 0:
        return None
    single, half = _PER_CLOCK.get((value("major"), value("minor")), _NEWEST)
    rates = zip(_PRECISIONS, (single, single, half / 2, half, 2 * half), strict=True)
    flops = {kind: cycles * rate for kind, rate in rates}
    return Peak(name, bandwidth, flops, value("L2_cache_size") or 64 * _MIB)
