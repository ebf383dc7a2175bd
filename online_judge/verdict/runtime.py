"""Statistics of a timed candidate."""

from __future__ import annotations

from dataclasses import asdict

from adaexplore.core.wire import EvaluationRequest
from online_judge.checks.facts.kernels import KernelShare
from online_judge.protocol.measurement import Timing

_UNDER_THEIR_NAMES = {
    *("rounds", "ci_low", "ci_high", "gpu_ms", "score_ms", "e2e_ms"),
    *("baseline_gpu_ms", "baseline_e2e_ms", "baseline_clean_ms", "baseline_trials"),
}


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
