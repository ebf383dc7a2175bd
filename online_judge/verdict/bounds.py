"""Flags for times that a GPU cannot reach: bytes over bandwidth, operations over peak."""

from __future__ import annotations

from adaexplore.core.wire import DtypeName, Tier
from online_judge.common.gpu_peaks import Peak
from online_judge.verdict.flags import Flag

SLACK = 0.85  # boards run a few percent over their datasheet, overclocked memory more
L2_MULTIPLE = 4  # smaller outputs may largely stay in the cache
_TERA = 1e12


def check(
    gpu_ms: float,
    *,
    peak: Peak,
    output_bytes: int,
    read_bytes: int = 0,
    flops: float = 0.0,
    dtype: DtypeName = "fp32",
    tier: Tier = "legacy",
) -> list[Flag]:
    """Flag one call's time that is too short.

    Args:
        gpu_ms: median time of a call with a cold L2 cache.
        peak: limits of the GPU.
        output_bytes: bytes that every call must write, without views of inputs and elements of stride 0.
        read_bytes: bytes of inputs and weights.
        flops: operations of the reference; a better algorithm may need fewer.
        dtype: of the problem.
        tier: precision that the request asks for.
    """
    # what is written last may still lie in the cache when the clock stops
    written = max(0, output_bytes - peak.l2_bytes)
    found = []
    least_ms = written / peak.bytes_per_s * 1e3
    if output_bytes > L2_MULTIPLE * peak.l2_bytes and gpu_ms < SLACK * least_ms:
        found.append(
            Flag(
                "below_bandwidth_bound",
                f"{gpu_ms:.4f} ms, but writing {output_bytes / 1e6:.1f} MB takes at least {least_ms:.4f} ms "
                f"at {_rate(peak)}",
            )
        )
    moved_ms = (read_bytes + written) / peak.bytes_per_s * 1e3
    precision, rate = peak.precision(dtype, tier)
    computed_ms = flops / rate * 1e3
    if gpu_ms < SLACK * max(moved_ms, computed_ms):
        if moved_ms >= computed_ms:
            evidence = (
                f"moving {(read_bytes + written) / 1e6:.1f} MB takes {moved_ms:.4f} ms at {_rate(peak)}"
            )
        else:
            evidence = (
                f"{flops / 1e9:.1f} GFLOP take {computed_ms:.4f} ms at {rate / _TERA:.0f} TFLOP/s "
                f"({precision} on {peak.name})"
            )
        found.append(Flag("below_soft_bound", f"{gpu_ms:.4f} ms, but {evidence}"))
    return found


def _rate(peak: Peak) -> str:
    return f"{peak.bytes_per_s / 1e12:.2f} TB/s ({peak.name})"
