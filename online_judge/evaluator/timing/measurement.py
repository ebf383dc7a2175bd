"""Turn an interleaved timing into the numbers of a verdict."""

from __future__ import annotations

import random
import statistics
from collections.abc import Sequence

import torch

from adaexplore.core.judging.parts import DeviceUse, HostClock
from adaexplore.core.wire import EvaluationRequest
from online_judge.checks.check import Observation
from online_judge.checks.timing.baseline import BaselineMoved, BaselineUnconfirmed
from online_judge.checks.timing.clocks import CallsDoneTogether, ClocksDisagree, UnevenCalls
from online_judge.checks.timing.side_stream import DeviceWorksOn
from online_judge.checks.timing.throttling import GpuState
from online_judge.common import gpu_peaks
from online_judge.common.timing import Stopwatch
from online_judge.evaluator.leases import Hold
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.timing import clock_check, speedup
from online_judge.evaluator.timing.clock_check import Clocks
from online_judge.evaluator.timing.interleaved import Outcome, Side
from online_judge.protocol.measurement import CleanMs, Timing

DRIFT = 0.03
DISTRUST = 0.15
_UNDISTURBED_ROUNDS = 3
_COPIES = 5


def measured(
    outcome: Outcome,
    hold: Hold,
    problem: Problem,
    request: EvaluationRequest,
    *,
    recorded_ms: float | None,
    clean: CleanMs | None,
    extra_ms: float,
    states: tuple[GpuState | None, GpuState | None],
    hardware: str,
) -> Timing:
    """Return the numbers of an interleaved timing, and observations about them.

    ``hold`` is its exclusive use of the device, ``recorded_ms`` replaces the measured baseline, ``clean`` are
    the baseline's times with nobody else around, ``extra_ms`` is how much longer it takes to copy one call's
    outputs than the reference's, and ``states`` are those of the GPU before and after.
    """
    clean_ms = None if clean is None else clean.after(outcome.flushes)
    candidate, reference = outcome.candidate, outcome.reference
    observations = list(outcome.observations)
    clocks = clock_check.Clocks.of(candidate.seen, reference.seen, extra_ms)
    copy_ms = max(outcome.copy_ms + extra_ms, 0.0)
    single_ms = None
    if candidate.single:
        single_ms = clock_check.fastest_ms(candidate.single, reference.single, extra_ms)
    score_ms = _score(outcome, clocks, copy_ms, single_ms, observations)
    if single_ms is not None:
        score_ms = _by_single_calls(score_ms, outcome.as_in_blocks(single_ms), observations)
    stays_slow = _stays_slow(outcome.alone_ms, clean_ms)
    baseline_ms, slowed = _baseline(outcome, clean_ms, observations, stays_slow=stays_slow)
    if recorded_ms is not None:
        baseline_ms = recorded_ms
    elif clean is None:
        observations.append(BaselineUnconfirmed())
    ratio = baseline_ms / score_ms
    low, high = speedup.interval(reference.calls, candidate.calls, random.Random(0))
    scale = ratio / (reference.gpu_ms / candidate.gpu_ms)
    before, after = states
    return Timing(
        times=speedup.summarise(candidate.samples),
        speedup=ratio,
        ci_low=low * scale,
        ci_high=high * scale,
        gpu_ms=candidate.gpu_ms,
        forward_gpu_ms=candidate.forward_ms,
        baseline_forward_gpu_ms=reference.forward_ms,
        score_ms=score_ms,
        e2e_ms=candidate.e2e_ms,
        baseline_ms=baseline_ms,
        recorded=recorded_ms is not None,
        baseline_gpu_ms=reference.gpu_ms,
        baseline_e2e_ms=reference.e2e_ms,
        baseline_clean_ms=clean_ms,
        baseline_stays_slow=stays_slow,
        baseline_slowed=slowed and not stays_slow,
        baseline_trials=len(reference.samples),
        rounds=len(candidate.calls),
        stopped_early=outcome.stopped_early,
        use=DeviceUse(
            held_s=hold.held_s,
            waited_s=hold.waited_s,
            gpu_s=outcome.gpu_s,
            spent_s=dict(outcome.spent_s),
        ),
        host=HostClock(
            wall_open_ms=statistics.median(seen.open_ms for seen in candidate.seen),
            baseline_open_ms=statistics.median(seen.open_ms for seen in reference.seen),
            block_ms=statistics.median(seen.block.span for seen in candidate.seen),
            tail_ms=statistics.median(seen.block.tail for seen in candidate.seen),
            graph_ms=statistics.median(candidate.graph) if candidate.graph else None,
            copy_ms=copy_ms,
            single_ms=single_ms,
            baseline_single_ms=min((seen.block.calls[0] for seen in reference.single), default=None),
        ),
        before=before,
        after=after,
        peak=gpu_peaks.peak(hardware, torch.cuda.get_device_properties(torch.cuda.current_device())),
        output_bytes=problem.cost.output_bytes,
        read_bytes=problem.cost.read_bytes,
        flops=problem.cost.flops,
        dtype=problem.reference.arithmetic,
        observations=tuple(observations),
        baseline_samples=tuple(map(tuple, reference.calls)) if request.samples else (),
    )


def copy_extra_ms(
    expected: Sequence[torch.Tensor], strides: Sequence[tuple[int, ...]], stopwatch: Stopwatch
) -> float:
    """Return how many ms longer it takes to copy outputs with these strides than the expected ones."""
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


def _copy_ms(source: torch.Tensor, to: torch.Tensor, stopwatch: Stopwatch) -> float:
    run = stopwatch.block(to.copy_, [(source,)] * _COPIES, [[]] * _COPIES, flushes=2)
    run.go()
    return statistics.median(run.times().calls)


def _score(
    outcome: Outcome,
    clocks: Clocks,
    copy_ms: float,
    single_ms: float | None,
    observations: list[Observation],
) -> float:
    """Return a candidate's milliseconds: GPU time if the evaluator's clock confirms it, else wall time.

    Calls may take longer on the wall because the host is slow, or because work was hidden from the events.
    The replay of a graph excludes the host between calls, but its caches are warm. If it confirms the events,
    the longer of both counts; if not, the replay counts, less its copies, and work was hidden, unless that is
    no more than a slow host adds to a block. If the calls cannot be captured, the cause is unknown and the
    wall time counts.

    If a few calls are much longer by the events, the host was slow in them, or they did the work of others.
    It was the host if calls alone (``single_ms``) and a replay both confirm the median. Else the larger
    counts of the mean and the wall time, which a replay limits if the events account for it. If they do not,
    and a replay contradicts the mean, work was hidden.
    """
    if clocks.runs_on:
        observations.append(DeviceWorksOn(tail_ms=clocks.tail_ms, claimed_ms=clocks.claimed_ms))
    side = outcome.candidate
    graph_ms = min(side.graph, default=None)  # a disturbance only makes it longer
    wall_ms = side.e2e_ms - copy_ms
    explained = graph_ms is not None and clock_check.confirmed(side.gpu_ms, graph_ms, copy_ms)
    alone = single_ms is not None and single_ms <= clock_check.RATIO * side.gpu_ms
    if outcome.is_uneven and not (explained and alone):
        explained = False
        if graph_ms is not None and not clocks.disagree:
            wall_ms = min(wall_ms, graph_ms)
        counted_ms = max(side.mean_ms, wall_ms)
        uneven = UnevenCalls(median_ms=side.gpu_ms, mean_ms=side.mean_ms, counted_ms=counted_ms)
        observations.append(uneven)
        if graph_ms is None or not clocks.disagree or clock_check.confirmed(side.mean_ms, graph_ms, copy_ms):
            return counted_ms
    elif not (
        outcome.is_uneven or clocks.disagree or clock_check.launch_bound(side.gpu_ms, side.e2e_ms, copy_ms)
    ):
        return side.gpu_ms
    else:
        counted_ms = max(wall_ms if graph_ms is None else graph_ms - copy_ms, side.gpu_ms)
    hidden = graph_ms is not None and not clock_check.confirmed(
        side.gpu_ms, graph_ms, copy_ms, clock_check.HOST_MS / side.graph_calls
    )
    observations.append(
        ClocksDisagree(
            gpu_ms=side.gpu_ms,
            wall_ms=side.e2e_ms,
            graph_ms=graph_ms,
            copy_ms=copy_ms,
            counted_ms=counted_ms,
            explained=explained,
            proven=outcome.quiet and hidden,
        )
    )
    return counted_ms


def _by_single_calls(score_ms: float, single_ms: float, observations: list[Observation]) -> float:
    """Return the time of calls alone if it is much longer than within blocks of many.

    The first call of a block can do the work of all: if they are short, that takes little longer than one.
    """
    if single_ms <= clock_check.RATIO * score_ms:
        return score_ms
    observations.append(CallsDoneTogether(call_ms=score_ms, single_ms=single_ms))
    return single_ms


def _baseline(
    outcome: Outcome, clean_ms: float | None, observations: list[Observation], *, stays_slow: bool
) -> tuple[float, bool]:
    """Return the baseline's time, and whether it was slowed in nearly all rounds.

    If it is much slower than without the candidate, the time without counts. The host may have been slow for
    a while: so rounds in which the baseline was as fast as without the candidate count. If there are hardly
    any, the gateway has the job done again, because a slow host slows an honest candidate too. So it has if
    the baseline stays much slower than before, also with the candidate stopped: the machine or the candidate
    slowed it for good, as without memory for its workspace cuDNN chooses a slower algorithm and keeps it. A
    smaller difference from the time before is only noted, unless the baseline is faster again once the
    candidate is stopped.
    """
    gpu_ms, alone_ms = outcome.reference.gpu_ms, outcome.alone_ms
    if clean_ms is None or abs(gpu_ms / clean_ms - 1) <= DRIFT:
        return gpu_ms, False
    without_ms = clean_ms if alone_ms is None or stays_slow else alone_ms
    counts, slowed = gpu_ms, False
    if is_slowed(gpu_ms, without_ms):
        undisturbed_ms = _undisturbed(outcome.candidate, outcome.reference, without_ms)
        counts = without_ms if undisturbed_ms is None else min(undisturbed_ms, gpu_ms)
        slowed = undisturbed_ms is None
    observations.append(BaselineMoved(gpu_ms=gpu_ms, clean_ms=clean_ms, after_ms=alone_ms, counted_ms=counts))
    return counts, slowed


def _stays_slow(alone_ms: float | None, clean_ms: float | None) -> bool:
    return alone_ms is not None and clean_ms is not None and is_slowed(alone_ms, clean_ms)


def _undisturbed(candidate: Side, reference: Side, without_ms: float) -> float | None:
    """Return the candidate's time multiplied by its speedup in rounds whose baseline was not slowed."""
    rounds = [
        (statistics.median(theirs), statistics.median(ours))
        for theirs, ours in zip(candidate.calls, reference.calls, strict=True)
    ]
    ratios = [ours / theirs for theirs, ours in rounds if not is_slowed(ours, without_ms)]
    return candidate.gpu_ms * statistics.median(ratios) if len(ratios) >= _UNDISTURBED_ROUNDS else None


def is_slowed(gpu_ms: float, without_ms: float) -> bool:
    """Return True if a baseline is too much slower beside a candidate than without it to count."""
    return gpu_ms > (1 + DISTRUST) * without_ms
