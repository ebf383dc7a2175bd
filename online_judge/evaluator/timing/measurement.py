"""From a race to the numbers of a verdict."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch

from adaexplore.core.wire import EvaluationRequest
from online_judge.candidate.kernel_share import KernelShare
from online_judge.common.timing import Stopwatch
from online_judge.evaluator.leases import Hold
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.timing import clock_check, gpu_state, speedup
from online_judge.evaluator.timing.clock_check import Clocks
from online_judge.evaluator.timing.gpu_state import GpuState
from online_judge.evaluator.timing.interleaved import Outcome, Side
from online_judge.verdict import bounds
from online_judge.verdict.flags import Flag

DRIFT = 0.03
DISTRUST = 0.15
_COPIES = 5


@dataclass(frozen=True)
class Measured:
    """A candidate's time in ms, v1's statistics with more beside them, and what is odd about them."""

    runtime_ms: float
    stats: dict[str, Any]
    flags: list[Flag]


def measured(
    outcome: Outcome,
    hold: Hold,
    problem: Problem,
    request: EvaluationRequest,
    *,
    recorded_ms: float | None,
    extra_ms: float,
    share: KernelShare | None,
    states: tuple[GpuState | None, GpuState | None],
    facts: dict[str, Any],
) -> Measured:
    """Numbers and flags of a race.

    Args:
        outcome: of the race.
        hold: of the device, for its length.
        problem: with the clean baseline and the cost of a call.
        request: whose baseline, precision and trials.
        recorded_ms: a recorded reference time that takes the place of the measured one.
        extra_ms: how much longer copying one call's outputs takes than copying the reference's.
        share: kernels of one call, as the candidate process tells them.
        states: of the GPU before and after.
        facts: ``hardware`` and ``device``.
    """
    candidate, reference = outcome.candidate, outcome.reference
    flags = list(outcome.flags)
    clocks = clock_check.Clocks.of(candidate.seen, reference.seen, extra_ms)
    copy_ms = max(outcome.copy_ms + extra_ms, 0.0)
    score_ms = _score(candidate, clocks, copy_ms, flags, quiet=outcome.quiet)
    baseline_ms = _baseline(reference.gpu_ms, problem.clean_ms(request), outcome.alone_ms, flags)
    if recorded_ms is not None:
        baseline_ms = recorded_ms
    ratio = baseline_ms / score_ms
    low, high = speedup.interval(reference.calls, candidate.calls, random.Random(0))
    scale = ratio / (reference.gpu_ms / candidate.gpu_ms)
    peak = bounds.peak(facts["hardware"], torch.cuda.get_device_properties(torch.cuda.current_device()))
    if peak is not None:
        flags += bounds.check(
            candidate.gpu_ms,
            peak=peak,
            output_bytes=problem.cost.output_bytes,
            read_bytes=problem.cost.read_bytes,
            flops=problem.cost.flops,
            dtype=request.dtype_str,
            tier=request.tier,
        )
    throttled = gpu_state.throttled(*states)
    if throttled is not None:
        flags.append(throttled)
    times = speedup.summarise(outcome.candidate.samples)
    before, after = states
    stats: dict[str, Any] = asdict(times) | {
        "hardware": facts["hardware"],
        "device": facts["device"],
        "fast_p": ratio,
        "ci_low": low * scale,
        "ci_high": high * scale,
        "gpu_ms": candidate.gpu_ms,
        "score_ms": score_ms,
        "e2e_ms": candidate.e2e_ms,
        "baseline": request.baseline,
        "baseline_type": "measured" if recorded_ms is None else "recorded",
        "baseline_time": baseline_ms,
        "baseline_gpu_ms": reference.gpu_ms,
        "baseline_e2e_ms": reference.e2e_ms,
        "baseline_clean_ms": problem.clean_ms(request),
        "baseline_trials": len(outcome.reference.samples),
        "rounds": len(outcome.candidate.calls),
        "slot": {
            "held_s": hold.held_s,
            "waited_s": hold.waited_s,
            "gpu_s": outcome.gpu_s,
            "spent_s": outcome.spent_s,
        },
    }
    stats["witness"] = {
        "wall_open_ms": statistics.median(seen.open_ms for seen in candidate.seen),
        "baseline_open_ms": statistics.median(seen.open_ms for seen in reference.seen),
        "block_ms": statistics.median(seen.block.span for seen in candidate.seen),
        "tail_ms": statistics.median(seen.block.tail for seen in candidate.seen),
        "graph_ms": statistics.median(candidate.graph) if candidate.graph else None,
        "copy_ms": copy_ms,
    }
    if before is not None and after is not None:
        stats["clocks"] = {"before": before.to_json(), "after": after.to_json()}
    if share is not None:
        stats["kernels"] = share.to_json()
    return Measured(times.mean if score_ms == candidate.gpu_ms else score_ms, stats, flags)


def copy_extra_ms(expected: Sequence[Any], strides: Sequence[tuple[int, ...]], stopwatch: Stopwatch) -> float:
    """How much longer copying outputs of these strides takes than copying the expected ones; in ms."""
    extra = 0.0
    for leaf, stride in zip(expected, strides, strict=True):
        if not leaf.numel() or tuple(leaf.stride()) == stride:
            continue
        to = torch.empty(leaf.shape, dtype=leaf.dtype, device="cuda")
        given, usual = (
            torch.empty_strided(leaf.shape, each, dtype=leaf.dtype, device="cuda")
            for each in (stride, leaf.stride())
        )
        extra += _copy_ms(given, to, stopwatch) - _copy_ms(usual, to, stopwatch)
    return extra


def _copy_ms(source: Any, to: Any, stopwatch: Stopwatch) -> float:
    run = stopwatch.block(to.copy_, [(source,)] * _COPIES, [[]] * _COPIES, flushes=2)
    run.go()
    return statistics.median(run.times().calls)


def _score(side: Side, clocks: Clocks, copy_ms: float, flags: list[Flag], *, quiet: bool) -> float:
    """A candidate's milliseconds: GPU time where the evaluator's own clock bears it out, else the wall's.

    Calls may take longer on the wall because the host is slow, or because work was hidden from the events.
    The replay of a graph leaves the host out: if it bears the events out, they count; if it does not, work
    was hidden; where the calls cannot be captured, or others were at work, nobody knows, and the wall counts.
    """
    if clocks.runs_on:
        evidence = (
            f"the GPU works on for {clocks.tail_ms:.4g} ms after timed calls of {clocks.claimed_ms:.4g} ms"
        )
        flags.append(Flag("side_stream", evidence))
    if side.mean_ms > clock_check.RATIO * side.gpu_ms:
        evidence = (
            f"calls of one block differ: {side.gpu_ms:.4g} ms is the median, "
            f"{side.mean_ms:.4g} ms the mean, which counts"
        )
        flags.append(Flag("launch_bound", evidence))
        return max(side.mean_ms, side.e2e_ms - copy_ms)
    if not clocks.disagree and not clock_check.launch_bound(side.gpu_ms, side.e2e_ms, copy_ms):
        return side.gpu_ms
    told = f"{side.gpu_ms:.4g} ms a call by events, {side.e2e_ms:.4g} ms on the wall"
    if not side.graph:
        wall_ms = max(side.e2e_ms - copy_ms, side.gpu_ms)
        flags.append(Flag("launch_bound", f"{told}, and it cannot be captured: {wall_ms:.4g} ms count"))
        return wall_ms
    graph_ms = min(side.graph)  # whatever disturbs it makes it longer
    if clock_check.confirmed(side.gpu_ms, graph_ms, copy_ms):
        flags.append(Flag("launch_bound", f"{told}, {graph_ms:.4g} ms in a replayed graph"))
        return side.gpu_ms
    evidence = f"{told}, {graph_ms:.4g} ms in a replayed graph, {copy_ms:.4g} ms of it for copies"
    flags.append(Flag("clock_mismatch" if quiet else "launch_bound", evidence))
    return max(graph_ms - copy_ms, side.gpu_ms)


def _baseline(gpu_ms: float, clean_ms: float | None, alone_ms: float | None, flags: list[Flag]) -> float:
    """The baseline's time; where it is much slower than without the candidate around, the latter counts.

    Clocks and a host that change in between change both sides alike, so what differs from a time measured
    earlier is only noted, unless the baseline is faster again as soon as the candidate is stopped.
    """
    if clean_ms is None or abs(gpu_ms / clean_ms - 1) <= DRIFT:
        return gpu_ms
    without_ms = clean_ms if alone_ms is None else alone_ms
    counts = without_ms if is_slowed(gpu_ms, without_ms) else gpu_ms
    alone = f"{clean_ms:.4g} ms alone" + ("" if alone_ms is None else f" before, {alone_ms:.4g} ms after it")
    evidence = f"{gpu_ms:.4g} ms beside the candidate, {alone}; {counts:.4g} ms count"
    flags.append(Flag("baseline_drift", evidence))
    return counts


def is_slowed(gpu_ms: float, without_ms: float) -> bool:
    """Whether a baseline beside a candidate is so much slower than without it that its time cannot count."""
    return gpu_ms > (1 + DISTRUST) * without_ms
