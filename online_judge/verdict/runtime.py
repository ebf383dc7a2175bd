"""Statistics and flags of a timed candidate, and bounds of its time: bytes over bandwidth, work over peak."""

from __future__ import annotations

from dataclasses import asdict

from adaexplore.core.wire import DtypeName, EvaluationRequest, Tier
from online_judge.checks.facts.kernels import KernelShare
from online_judge.common.gpu_peaks import Peak
from online_judge.protocol.measurement import Timing
from online_judge.verdict import observations
from online_judge.verdict.flags import Flag

SLACK = 0.85  # boards run a few percent over their datasheet, overclocked memory more
L2_MULTIPLE = 4  # smaller outputs may largely stay in the cache
_UNDER_THEIR_NAMES = {
    *("rounds", "ci_low", "ci_high", "gpu_ms", "score_ms", "e2e_ms"),
    *("baseline_gpu_ms", "baseline_e2e_ms", "baseline_clean_ms", "baseline_trials"),
}
_WORK = {"output_bytes", "read_bytes", "flops", "dtype"}


def milliseconds(timing: Timing) -> float:
    """Return v1's runtime: the mean of the timed calls, or the time that counts instead."""
    return timing.times.mean if timing.score_ms == timing.gpu_ms else timing.score_ms


def statistics(
    timing: Timing, request: EvaluationRequest, share: KernelShare | None, *, hardware: str, device: str
) -> dict[str, object]:
    """Return v1's statistics and further ones; times in milliseconds.

    ``hardware`` names the GPU, ``device`` is its name for clients.
    """
    stats = asdict(timing.times) | timing.model_dump(include=_UNDER_THEIR_NAMES)
    stats |= {
        "hardware": hardware,
        "device": device,
        "fast_p": timing.speedup,
        "baseline": request.baseline,
        "baseline_type": "recorded" if timing.recorded else "measured",
        "baseline_time": timing.baseline_ms,
        "slot": asdict(timing.use),
        "witness": asdict(timing.host),
    }
    if timing.before is not None and timing.after is not None:
        stats["clocks"] = {"before": timing.before.to_json(), "after": timing.after.to_json()}
    stats |= timing.model_dump(include={"forward_gpu_ms", "baseline_forward_gpu_ms"}, exclude_none=True)
    if timing.stopped_early:
        stats["stopped_early"] = True
    if timing.baseline_samples:
        stats["baseline_samples"] = [list(calls) for calls in timing.baseline_samples]
    if share is not None:
        stats["kernels"] = share.to_json()
    return stats


def sol_score(timing: Timing, request: EvaluationRequest) -> dict[str, object]:
    """Score how near a candidate is to the hardware's bound, as SOL-ExecBench does; empty if unknown.

    1 is at the bound, 0.5 as fast as the baseline.
    """
    if timing.peak is None:
        return {}
    _, rate = timing.peak.precision(timing.dtype, request.tier)
    moved_ms = (timing.read_bytes + timing.output_bytes) / timing.peak.bytes_per_s * 1e3
    bound_ms = max(moved_ms, timing.flops / rate * 1e3)
    space_ms = timing.baseline_ms - bound_ms
    over_ms = max(timing.score_ms - bound_ms, 0.0)
    score = 1.0 / (1.0 + over_ms / space_ms) if space_ms > 0 else float(over_ms == 0)
    return {"sol_ms": bound_ms, "sol_score": score}


def flags_of(timing: Timing, request: EvaluationRequest, folder: str) -> list[Flag]:
    """Flag anomalies of the times, the timed outputs and the GPU's state."""
    found = observations.flags_of_all(timing.observations, folder)
    if timing.peak is not None:
        work = timing.model_dump(include=_WORK)
        found += check_bounds(timing.gpu_ms, peak=timing.peak, tier=request.tier, **work)
    return found + observations.of_gpu_states(timing.before, timing.after)


def check_bounds(
    gpu_ms: float,
    *,
    peak: Peak,
    output_bytes: int,
    read_bytes: int = 0,
    flops: float = 0.0,
    dtype: DtypeName = "fp32",
    tier: Tier = "legacy",
) -> list[Flag]:
    """Flag a time of a call that is too short to be possible with a cold L2 cache.

    ``output_bytes`` are those that every call must write, without views of inputs and elements of stride 0.
    ``flops`` are the reference's; a better algorithm may need fewer.
    """
    found = []
    memory = f"{peak.bytes_per_s / 1e12:.2f} TB/s ({peak.name})"
    # the last writes may still be in the cache when the clock stops
    written = max(0, output_bytes - peak.l2_bytes)
    least_ms = written / peak.bytes_per_s * 1e3
    if output_bytes > L2_MULTIPLE * peak.l2_bytes and gpu_ms < SLACK * least_ms:
        evidence = f"writing {output_bytes / 1e6:.1f} MB takes at least {least_ms:.4f} ms at {memory}"
        found.append(Flag("below_bandwidth_bound", f"{gpu_ms:.4f} ms, but {evidence}"))
    moved_ms = (read_bytes + written) / peak.bytes_per_s * 1e3
    precision, rate = peak.precision(dtype, tier)
    computed_ms = flops / rate * 1e3
    if gpu_ms < SLACK * max(moved_ms, computed_ms):
        evidence = f"moving {(read_bytes + written) / 1e6:.1f} MB takes {moved_ms:.4f} ms at {memory}"
        if moved_ms < computed_ms:
            arithmetic = f"{rate / 1e12:.0f} TFLOP/s ({precision} on {peak.name})"
            evidence = f"{flops / 1e9:.1f} GFLOP take {computed_ms:.4f} ms at {arithmetic}"
        found.append(Flag("below_soft_bound", f"{gpu_ms:.4f} ms, but {evidence}"))
    return found
