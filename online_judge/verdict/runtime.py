"""Statistics and flags of a timed candidate."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from adaexplore.core.wire import EvaluationRequest
from online_judge.protocol.kernels import KernelShare
from online_judge.protocol.measurement import Timing
from online_judge.verdict import bounds, observations
from online_judge.verdict.flags import Flag


def milliseconds(timing: Timing) -> float:
    """v1's runtime: the mean of the timed calls, or the time that counts in their place."""
    return timing.times.mean if timing.score_ms == timing.gpu_ms else timing.score_ms


def statistics(
    timing: Timing, request: EvaluationRequest, share: KernelShare | None, *, hardware: str, device: str
) -> dict[str, Any]:
    """Return v1's statistics with more beside them; times in milliseconds.

    ``hardware`` names the GPU, ``device`` is its name towards clients.
    """
    stats: dict[str, Any] = asdict(timing.times) | {
        "hardware": hardware,
        "device": device,
        "fast_p": timing.speedup,
        "ci_low": timing.ci_low,
        "ci_high": timing.ci_high,
        "gpu_ms": timing.gpu_ms,
        "score_ms": timing.score_ms,
        "e2e_ms": timing.e2e_ms,
        "baseline": request.baseline,
        "baseline_type": "recorded" if timing.recorded else "measured",
        "baseline_time": timing.baseline_ms,
        "baseline_gpu_ms": timing.baseline_gpu_ms,
        "baseline_e2e_ms": timing.baseline_e2e_ms,
        "baseline_clean_ms": timing.baseline_clean_ms,
        "baseline_trials": timing.baseline_trials,
        "rounds": timing.rounds,
        "slot": asdict(timing.use),
        "witness": asdict(timing.host),
    }
    if timing.before is not None and timing.after is not None:
        stats["clocks"] = {"before": timing.before.to_json(), "after": timing.after.to_json()}
    if share is not None:
        stats["kernels"] = share.to_json()
    return stats


def flags_of(timing: Timing, request: EvaluationRequest, folder: str) -> list[Flag]:
    """What is odd about the times, the timed outputs and the GPU's state meanwhile."""
    found = observations.flags_of_all(timing.observations, folder)
    if timing.peak is not None:
        found += bounds.check(
            timing.gpu_ms,
            peak=timing.peak,
            output_bytes=timing.output_bytes,
            read_bytes=timing.read_bytes,
            flops=timing.flops,
            dtype=request.dtype_str,
            tier=request.tier,
        )
    return found + observations.of_gpu_states(timing.before, timing.after)
