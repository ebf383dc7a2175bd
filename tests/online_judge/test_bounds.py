"""Times that the hardware does not allow are found; times that it allows are not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.judging.flags import Flag
from online_judge.checks.timing.bounds import CallWork
from online_judge.common.gpu_peaks import Peak, peak
from online_judge.verdict.flags import of_candidate

MB = 10**6


def h200() -> Peak:
    found = peak("NVIDIA H200")
    assert found is not None
    return found


@pytest.mark.parametrize(
    ("name", "terabytes", "half"),
    [
        ("NVIDIA H200", 4.8, 989.4),
        ("NVIDIA H100 80GB HBM3", 3.35, 989.4),
        ("NVIDIA H100 PCIe", 2.04, 756),
        ("NVIDIA H100 NVL", 3.94, 835.5),
        ("NVIDIA GH200 480GB", 4.9, 989.4),
        ("NVIDIA B200", 8.0, 2250),
        ("NVIDIA A100-SXM4-40GB", 1.555, 312),
        ("NVIDIA A100-SXM4-80GB", 2.039, 312),
        ("NVIDIA A100 80GB PCIe", 2.039, 312),
        ("NVIDIA L40S", 0.864, 366),
        ("NVIDIA L4", 0.3, 121),
        ("NVIDIA RTX A6000", 0.768, 154.8),
        ("NVIDIA GeForce RTX 4090", 1.008, 330.3),
        ("Tesla V100-SXM2-32GB", 1.134, 130),
        ("Tesla T4", 0.32, 65),
    ],
)
def test_known_gpu_is_found_by_its_name(name: str, terabytes: float, half: float) -> None:
    found = peak(name)
    assert found is not None
    assert found.bytes_per_s == pytest.approx(terabytes * 1e12)
    assert found.flops["half"] == pytest.approx(half * 1e12)


@pytest.mark.parametrize("name", ["NVIDIA H20", "NVIDIA A1000", "NVIDIA T400", "NVIDIA GeForce RTX 5090", ""])
def test_similar_gpu_name_matches_no_known_gpu(name: str) -> None:
    assert peak(name) is None


@pytest.mark.parametrize(
    ("known", "major", "minor", "processors", "khz", "memory_khz", "bus"),
    [
        ("NVIDIA H200", 9, 0, 132, 1_980_000, 3_201_000, 6144),
        ("NVIDIA A100-SXM4-80GB", 8, 0, 108, 1_410_000, 1_593_000, 5120),
        ("NVIDIA GeForce RTX 4090", 8, 9, 128, 2_520_000, 10_501_000, 384),
    ],
)
def test_unknown_gpu_is_estimated_from_its_properties(
    known: str, major: int, minor: int, processors: int, khz: int, memory_khz: int, bus: int
) -> None:
    properties = SimpleNamespace(
        major=major,
        minor=minor,
        multi_processor_count=processors,
        clock_rate=khz,
        memory_clock_rate=memory_khz,
        memory_bus_width=bus,
        L2_cache_size=40 * 2**20,
    )
    derived, table = peak("a new one", properties), peak(known)
    assert derived is not None
    assert table is not None
    assert derived.bytes_per_s == pytest.approx(table.bytes_per_s, rel=0.04)
    assert derived.flops["half"] == pytest.approx(table.flops["half"], rel=0.15)
    assert derived.flops["fp32"] == pytest.approx(table.flops["fp32"], rel=0.15)
    assert derived.l2_bytes == 40 * 2**20


def test_gpu_without_clocks_has_no_limits() -> None:
    assert peak("a new one", SimpleNamespace(major=11, minor=0)) is None


def bounds(**work: Any) -> list[Flag]:
    return of_candidate([CallWork(**work)], "/job")


def test_time_below_writing_the_output_is_rejected() -> None:
    (hard, soft) = bounds(gpu_ms=0.1, peak=h200(), output_bytes=1000 * MB)
    assert (hard.id, hard.severity) == ("below_bandwidth_bound", "reject")
    assert hard.evidence.startswith("0.1000 ms, but writing 1000.0 MB takes at least 0.1952 ms at 4.80 TB/s")
    assert soft.id == "below_soft_bound"


def test_small_output_may_stay_in_the_cache() -> None:
    assert bounds(gpu_ms=0.001, peak=h200(), output_bytes=200 * MB, read_bytes=0)[0].id == "below_soft_bound"
    assert bounds(gpu_ms=0.001, peak=h200(), output_bytes=50 * MB) == []


def test_time_below_reading_the_inputs_is_suspect() -> None:
    (flag,) = bounds(gpu_ms=0.1, peak=h200(), output_bytes=4, read_bytes=1000 * MB)
    assert (flag.id, flag.severity) == ("below_soft_bound", "suspect")
    assert flag.evidence == "0.1000 ms, but moving 1000.0 MB takes 0.2083 ms at 4.80 TB/s (NVIDIA H200)"
    assert bounds(gpu_ms=0.25, peak=h200(), output_bytes=4, read_bytes=1000 * MB) == []


@pytest.mark.parametrize(
    ("tier", "dtype", "least_ms"),
    [
        ("strict", "fp32", 1e12 / (494.7e12 / 3) * 1e3),
        ("tf32", "fp32", 1e12 / 989.4e12 * 1e3),
        ("half", "fp32", 1e12 / 989.4e12 * 1e3),
        ("strict", "bf16", 1e12 / 989.4e12 * 1e3),
        ("legacy", "fp32", 1e12 / 1978.9e12 * 1e3),
    ],
)
def test_soft_bound_uses_fastest_arithmetic_for_tier(tier: str, dtype: str, least_ms: float) -> None:
    def ids(factor: float) -> list[str]:
        found = bounds(
            gpu_ms=factor * least_ms,
            peak=h200(),
            output_bytes=4,
            flops=1e12,
            dtype=dtype,  # type: ignore[arg-type]
            tier=tier,  # type: ignore[arg-type]
        )
        return [flag.id for flag in found]

    assert ids(0.8) == ["below_soft_bound"]
    assert ids(0.9) == []


@given(
    output=st.integers(0, 10**11),
    read=st.integers(0, 10**11),
    flops=st.floats(0, 1e16),
    over=st.floats(1, 10),
)
def test_nothing_at_the_limit_or_above_is_flagged(output: int, read: int, flops: float, over: float) -> None:
    gpu = h200()
    ms = max((output + read) / gpu.bytes_per_s, flops / gpu.flops["fp8"]) * 1e3
    assert bounds(gpu_ms=ms * over + 1e-6, peak=gpu, output_bytes=output, read_bytes=read, flops=flops) == []
