"""Figures over the best kernels of tasks, by the published definitions of benchmarks."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import TypeGuard

from pydantic import BaseModel, ConfigDict

from adaexplore.core.dialects.catalogue import TRITONBENCH
from adaexplore.report.task_result import Best

SPEEDUP_CAP = 10.0
"""Upper clamp of speedups in the mean and in GM(10)."""

FAILED_IN_GM = 0.1
"""Value of a failed task in GM(10) over all tasks; in the mean it counts as 0."""

KERNELBENCH_THRESHOLDS = (0.0, 0.5, 0.8, 1.0, 1.5, 2.0)
"""Thresholds of KernelBench's fast_p: the share of tasks with a correct kernel that is faster."""


_PLAUSIBLE = (0.1, 10.0)
"""TritonBench counts only speedups between these."""


class SpeedupFigures(BaseModel):
    """Figures of a set of kernels; None is a figure that does not apply.

    A task's speedup is that of its best correct candidate. Figures of speedups cover the tasks
    with a known speedup: failed tasks, and correct ones measured on hardware. Correct tasks that were not
    measured (under the interpreter) are left out; if no correct task was measured, or none could be, these
    figures are None.
    """

    model_config = ConfigDict(frozen=True)

    tasks: int  # all tasks of the run, including those that could not run or were not begun
    correct: int  # tasks with a correct candidate
    accuracy: float | None  # share of correct tasks
    mean_speedup_all: float | None  # arithmetic mean of speedups clamped at 10, a failed task counting as 0
    mean_speedup_correct: float | None  # the same over correct tasks only
    mean_unclamped: float | None  # as ``mean_speedup_all``, without the clamp
    gm10_all: float | None  # geometric mean of speedups clamped at 10, a failed task counting as 0.1
    gm10_correct: float | None  # the same over correct tasks only
    fast_1_2: float | None  # share of tasks with a speedup strictly above 1.2
    fast_2: float | None  # share of tasks with a speedup strictly above 2


class Metric(BaseModel):
    """One published figure of a benchmark, over all kernels and over those without suspect flags."""

    model_config = ConfigDict(frozen=True)

    name: str
    value: float | None
    clean: float | None
    is_share: bool


def speedup_figures(bests: Sequence[Best]) -> SpeedupFigures:
    """Compute the figures of tasks with these best kernels."""
    speedups = [best.speedup for best in bests if best.speedup is not None]
    known = _known(bests)
    return SpeedupFigures(
        tasks=len(bests),
        correct=sum(best.correct for best in bests),
        accuracy=mean([float(best.correct) for best in bests]),
        mean_speedup_all=mean([min(speedup, SPEEDUP_CAP) for speedup in known]),
        mean_speedup_correct=mean([min(speedup, SPEEDUP_CAP) for speedup in speedups]),
        mean_unclamped=mean(known),
        gm10_all=gm10(known),
        gm10_correct=gm10(speedups),
        fast_1_2=fast(1.2, bests),
        fast_2=fast(2.0, bests),
    )


def gm10_log(speedup: float | None) -> float:
    """Return the logarithm of a task's speedup as GM(10) counts it; None is a failed task."""
    return math.log(min(speedup or FAILED_IN_GM, SPEEDUP_CAP))


def gm10(speedups: Sequence[float | None]) -> float | None:
    """Return the geometric mean of speedups as GM(10) counts them; None of nothing."""
    log = mean([gm10_log(speedup) for speedup in speedups])
    return None if log is None else math.exp(log)


def is_plausible(speedup: float | None) -> TypeGuard[float]:
    """Return whether TritonBench counts a speedup."""
    return speedup is not None and _PLAUSIBLE[0] < speedup < _PLAUSIBLE[1]


def fast(threshold: float, bests: Sequence[Best]) -> float | None:
    """Return the share of tasks whose kernel is correct and faster than ``threshold`` times the reference."""
    return mean([float(speedup > threshold) for speedup in _known(bests)])


def score_sheet(
    benchmark: str,
    bests: Sequence[Best],
    clean: Sequence[Best],
    called: Sequence[bool],
    clean_called: Sequence[bool],
) -> tuple[Metric, ...]:
    """Compute the published figures of a benchmark.

    Args:
        benchmark: name as in ``test_source``; unknown ones have KernelBench's figures.
        bests: the best kernel of each task.
        clean: the best kernel without suspect flags of each task that counts after flags.
        called: whether all calls of a kernel of the task ran to completion.
        clean_called: the same for each task that counts after flags.
    """
    before, after = _published(benchmark, bests, called), _published(benchmark, clean, clean_called)
    return tuple(
        Metric(name=name, value=value, clean=after[name][0], is_share=share)
        for name, (value, share) in before.items()
    )


def _published(
    benchmark: str, bests: Sequence[Best], called: Sequence[bool]
) -> Mapping[str, tuple[float | None, bool]]:
    """Return the published figures by name, and whether each is a share."""
    figures = speedup_figures(bests)
    if benchmark in TRITONBENCH:
        return {
            "call accuracy": (mean([float(each) for each in called]), True),
            "execution accuracy": (figures.accuracy, True),
            "speedup": (mean([best.speedup for best in bests if is_plausible(best.speedup)]), False),
        }
    if benchmark in ("FIT", "MLSYS"):
        scored = [best for best in bests if best.sol_score is not None or not best.correct]
        scores = [best.sol_score or 0.0 for best in scored]
        known = [] if unmeasured(bests) else [best for best in bests if best.speedup or not best.correct]
        wins = [mean([float(speedup > 1) for speedup in _workloads(best)]) or 0.0 for best in known]
        return {
            "passed": (figures.accuracy, True),
            "win@1": (mean(wins), True),
            "SOL score": (mean(scores) if any(best.sol_score is not None for best in bests) else None, False),
            "speedup": (geometric_mean([best.speedup for best in bests if best.speedup]), False),
        }
    return {
        "accuracy": (figures.accuracy, True),
        "mean speedup (at most 10)": (figures.mean_speedup_all, False),
        "GM(10)": (figures.gm10_all, False),
        "fast_1.2": (figures.fast_1_2, True),
        **{f"fast_{threshold:g}": (fast(threshold, bests), True) for threshold in KERNELBENCH_THRESHOLDS},
    }


def unmeasured(bests: Sequence[Best]) -> bool:
    """Return whether no speedup is known, because correct kernels were not timed or there was no GPU."""
    untimed = any(best.correct or best.interpreted for best in bests)
    return untimed and all(best.speedup is None for best in bests)


def _known(bests: Sequence[Best]) -> list[float]:
    """Return the speedups of tasks that are correct and measured, 0 for failed ones.

    Correct tasks that were not measured are left out; without any measured correct task the result is empty.
    """
    if unmeasured(bests):
        return []
    return [best.speedup or 0.0 for best in bests if best.speedup is not None or not best.correct]


def _workloads(best: Best) -> Sequence[float]:
    """Return the speedup on each workload; for a single workload the kernel's speedup."""
    return best.workload_speedups or ([] if best.speedup is None else [best.speedup])


def mean(values: Sequence[float]) -> float | None:
    return statistics.fmean(values) if values else None


def geometric_mean(values: Sequence[float]) -> float | None:
    """Return the geometric mean; None of nothing."""
    return statistics.geometric_mean(values) if values else None
