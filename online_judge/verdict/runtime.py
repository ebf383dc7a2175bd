"""Times of a candidate for its verdict."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from adaexplore.core.judging.parts import RuntimeStats
from adaexplore.core.wire import EvaluationRequest
from online_judge.checks.facts.kernels import KernelShare
from online_judge.protocol.measurement import Timing

_SAME = {
    name: field.default for name, field in RuntimeStats.model_fields.items() if name in Timing.model_fields
}
_ALWAYS = "baseline_clean_ms"
"""Given even if it was not measured."""


def statistics(
    timing: Timing,
    request: EvaluationRequest,
    share: KernelShare | None,
    *,
    hardware: str,
    device: str,
    scored: bool = False,
) -> RuntimeStats:
    """Return the statistics, ``scored`` with the distance from the hardware's bound.

    ``hardware`` names the GPU, ``device`` is its name for clients.
    """
    given: dict[str, Any] = asdict(timing.times)
    for name, default in _SAME.items():
        value = getattr(timing, name)
        if value != default or name == _ALWAYS:
            given[name] = value
    if timing.before is not None and timing.after is not None:
        given["clocks"] = {"before": timing.before.to_json(), "after": timing.after.to_json()}
    if share is not None:
        given["kernels"] = share.to_json()
    if scored:
        given |= sol_score(timing, request)
    return RuntimeStats(
        runtime_ms=timing.times.mean if timing.score_ms == timing.gpu_ms else timing.score_ms,
        hardware=hardware,
        device=device,
        baseline=request.baseline,
        baseline_type="recorded" if timing.recorded else "measured",
        **given,
    )


def sol_score(timing: Timing, request: EvaluationRequest) -> dict[str, float]:
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
