"""Paired comparison of runs with several configurations on the same tasks and seeds."""

import math
import random
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from statistics import fmean

from pydantic import BaseModel, ConfigDict

from adaexplore.report.figures import gm10_log, unmeasured
from adaexplore.report.statistics import run_results
from adaexplore.report.task_result import TaskResult, total_usage
from adaexplore.report.text import text_table, wrapped

RESAMPLES = 5000

Logs = dict[tuple[str, int], float]
"""Logarithm of the speedup by task and index of the run, as GM(10) counts it."""


class Compared(BaseModel):
    model_config = ConfigDict(frozen=True)

    name: str
    runs: int
    tasks: int  # number of tasks in all runs
    correct: int  # tasks with a correct kernel without suspect flags
    # geometric mean of their speedups, at most 10 each, a failed task counting as 0.1; None if no correct
    # kernel was timed
    gm10: float | None
    usd: float | None  # cost of the steps; None if a part of it is unknown
    pairs: int  # number of pairs of task and seed for which the first configuration has a figure too
    # geometric mean of speedup / the first configuration's speedup; None for the first and without pairs
    ratio: float | None
    ci_low: float | None  # lower bound of the 95 % interval of ``ratio``, by resampling tasks
    ci_high: float | None  # upper bound


def compare(runs: Mapping[str, Sequence[Path]], steps: int | None = None) -> list[Compared]:
    """Compare each configuration's runs with those of the first, seed by seed and task by task.

    Args:
        runs: run directories by configuration; equal indices have equal seeds.
        steps: count the first steps only.

    Raises:
        RecordError: a record cannot be read.
    """
    found = {name: [run_results(folder, steps) for folder in folders] for name, folders in runs.items()}
    left_out = {each.key for runs in found.values() for run in runs for each in run if each.degenerate}
    logs = {name: _logs(results, left_out) for name, results in found.items()}
    first = next(iter(logs.values()))
    return [
        _compared(name, results, logs[name], None if logs[name] is first else first)
        for name, results in found.items()
    ]


def comparison_table(compared: Sequence[Compared], width: int | None = None) -> str:
    """Format one row per configuration, or one block if ``width`` is too small for a table."""
    rows = []
    for each in compared:
        against = "-"
        if each.ratio is not None:
            against = f"{each.ratio:.3f}x ({each.ci_low:.3f} to {each.ci_high:.3f}, {each.pairs} pairs)"
        gm10 = "-" if each.gm10 is None else f"{each.gm10:.3f}"
        usd = "unknown" if each.usd is None else f"${each.usd:.2f}"
        rows.append([each.name, str(each.runs), f"{each.correct} of {each.tasks}", gm10, usd, against])
    header = ["configuration", "runs", "correct", "GM(10)", "cost", f"against {compared[0].name} (95 %)"]
    return wrapped(text_table(header, rows, width), width)


def _logs(runs: Sequence[Sequence[TaskResult]], left_out: Collection[str]) -> Logs:
    """Return the known figures: untimed kernels and degenerate problems, ``left_out``, have none.

    If no correct kernel was timed, failed tasks have none either.
    """
    found = {
        (result.key, place): result.clean
        for place, results in enumerate(runs)
        for result in results
        if result.key not in left_out
    }
    if unmeasured(list(found.values())):
        return {}
    known = {key: best for key, best in found.items() if best.speedup is not None or not best.correct}
    return {key: gm10_log(best.speedup) for key, best in known.items()}


def _compared(name: str, runs: Sequence[Sequence[TaskResult]], logs: Logs, first: Logs | None) -> Compared:
    results = [result for each in runs for result in each]
    usage = total_usage(result.usage for result in results)
    by_task: dict[str, list[float]] = {}
    for (key, place), value in logs.items():
        if first is not None and (key, place) in first:
            by_task.setdefault(key, []).append(value - first[key, place])
    ratio, low, high = ratio_interval(list(by_task.values()))
    return Compared(
        name=name,
        runs=len(runs),
        tasks=len(results),
        correct=sum(result.clean.correct for result in results),
        gm10=math.exp(fmean(logs.values())) if logs else None,
        usd=None if usage is None else usage.usd,
        pairs=sum(map(len, by_task.values())),
        ratio=ratio,
        ci_low=low,
        ci_high=high,
    )


def ratio_interval(tasks: Sequence[Sequence[float]]) -> tuple[float | None, float | None, float | None]:
    """Return the geometric mean of ratios with its 95 % interval, by resampling tasks; None without tasks.

    Args:
        tasks: for each task the logarithms of its ratios, one per seed; seeds of a task are not independent.
    """
    if not tasks:
        return None, None, None
    draw = random.Random(0)
    means = sorted(_mean(draw.choices(tasks, k=len(tasks))) for _ in range(RESAMPLES))
    low, high = means[int(0.025 * RESAMPLES)], means[int(0.975 * RESAMPLES) - 1]
    return math.exp(_mean(tasks)), math.exp(low), math.exp(high)


def _mean(tasks: Sequence[Sequence[float]]) -> float:
    return fmean(value for task in tasks for value in task)
