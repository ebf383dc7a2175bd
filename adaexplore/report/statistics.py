"""The figures of a run, by the definitions of the paper's evaluation."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from adaexplore.core.errors import UsageError
from adaexplore.core.flags import DEGENERATE
from adaexplore.core.usage import Usage
from adaexplore.records.run_records import RunRecords
from adaexplore.report.savings import Savings
from adaexplore.report.task_result import Best, TaskResult, task_result, total_usage

SPEEDUP_CAP = 10.0
"""Speedups count at most this in the mean and in GM(10)."""

FAILED_IN_GM = 0.1
"""What a failed task counts as in GM(10) over all tasks; in the mean it counts as 0."""


class TaskStatistics(BaseModel):
    """One task's row; ids are integers where they are numeric.

    ``ci_low`` and ``ci_high`` bound the speedup where the judge gave an interval. ``flags`` are what makes
    the best kernel suspect; ``clean_speedup`` and ``clean_step`` are those of the best kernel without such.
    ``problem_flags`` are what the judge found about the problem.
    """

    model_config = ConfigDict(frozen=True)

    level: int | str
    problem_id: int | str
    correct: bool
    speedup: float | None
    best_step: int | None
    ci_low: float | None
    ci_high: float | None
    flags: tuple[str, ...]
    clean_speedup: float | None
    clean_step: int | None
    problem_flags: tuple[str, ...]


class SpeedupFigures(BaseModel):
    """The figures that depend on which kernels count; see :class:`RunStatistics`."""

    model_config = ConfigDict(frozen=True)

    tasks: int
    correct: int
    accuracy: float | None
    mean_speedup_all: float | None
    mean_speedup_correct: float | None
    mean_unclamped: float | None
    gm10_all: float | None
    gm10_correct: float | None
    fast_1_2: float | None
    fast_2: float | None


class Tokens(BaseModel):
    """Tokens of all requests, None where not recorded.

    ``cached`` ones, read from the cache, and ``written`` ones, which it took in, are parts of the input.
    """

    model_config = ConfigDict(frozen=True)

    input: int | None
    cached: int | None
    written: int | None
    output: int | None


class SavingsFigures(BaseModel):
    """See :class:`~adaexplore.report.savings.Savings`; the most frequent first."""

    model_config = ConfigDict(frozen=True)

    outcomes: dict[str, int]
    evaluations: int
    saved: dict[str, int]
    repairs: dict[str, int]


class Paid(BaseModel):
    """What all replies cost that came in a run's own sessions, recorded in a step or not."""

    model_config = ConfigDict(frozen=True)

    requests: int
    tokens: Tokens
    usd: float | None


class RunStatistics(BaseModel):
    """The figures of a run within ``steps`` steps; None is a figure that does not apply.

    A task's speedup is that of its best correct candidate. Figures of speedups are over the tasks
    whose speedup is known: the failed ones and the correct ones measured on hardware. A task that is
    correct but was not measured (under the interpreter) stays out of them; where all correct tasks
    are such, these figures are None.

    Attributes:
        run: the run's folder.
        tasks: tasks with a folder, the ones that could not be run included.
        correct: tasks with a correct candidate.
        accuracy: their share.
        mean_speedup_all: arithmetic mean of speedups clamped at 10, a failed task counting as 0.
        mean_speedup_correct: the same over correct tasks only.
        mean_unclamped: as ``mean_speedup_all``, without the clamp.
        gm10_all: geometric mean of speedups clamped at 10, a failed task counting as 0.1.
        gm10_correct: the same over correct tasks only.
        fast_1_2: share of tasks with a speedup strictly above 1.2.
        fast_2: share of tasks with a speedup strictly above 2.
        pass_at_1: share of tasks whose first step of a model is correct; None where steps are not recorded.
        steps: the number of steps that the figures are within: the most that a task took of those asked for.
        steps_taken: steps of all tasks together, as the closing report of a run counts them.
        tokens: what the models read and wrote in them.
        usd: what that cost; None when a part of it is unknown.
        per_task: the tasks, in natural order.
        flagged: tasks whose best kernel carries suspect flags.
        flags: how many of these carry which.
        problem_flagged: correct tasks whose problem carries flags.
        problem_flags: how many of these carry which.
        clean: the same figures with kernels that carry suspect flags counted as if they had not been found;
            tasks whose problem is degenerate are left out.
        savings: what steps came to before the judge, and the evaluations that they did without.
        paid: what was paid for, whatever the steps: replies that a kill lost too, and those about rules;
            without the steps that were taken over from another run. None where it was not noted.
    """

    model_config = ConfigDict(frozen=True)

    run: str
    tasks: int
    correct: int
    accuracy: float | None
    mean_speedup_all: float | None
    mean_speedup_correct: float | None
    mean_unclamped: float | None
    gm10_all: float | None
    gm10_correct: float | None
    fast_1_2: float | None
    fast_2: float | None
    pass_at_1: float | None
    steps: int
    steps_taken: int
    tokens: Tokens
    usd: float | None
    per_task: tuple[TaskStatistics, ...]
    flagged: int
    flags: dict[str, int]
    problem_flagged: int
    problem_flags: dict[str, int]
    clean: SpeedupFigures
    savings: SavingsFigures
    paid: Paid | None


def run_results(folder: Path, within: int | None = None) -> list[TaskResult]:
    """What each task of the run in ``folder`` came to within its first ``within`` steps, in natural order.

    Raises:
        UsageError: ``within`` is below 1.
        RecordError: ``folder`` is no run, or a record in it is damaged.
    """
    if within is not None and within < 1:
        raise UsageError(f"--step must be at least 1, not {within}")
    run = RunRecords.existing(folder)
    return [task_result(run.task(key), within) for key in run.tasks()]


def run_statistics(folder: Path, within: int | None = None) -> RunStatistics:
    """The figures of the run in ``folder`` within its first ``within`` steps, by default in all recorded.

    Raises:
        UsageError: ``within`` is below 1.
        RecordError: ``folder`` is no run, or a record in it is damaged.
        StorageError: what it cost cannot be read.
    """
    noted = [usage for _, usage in RunRecords(folder).usage()]
    return statistics_of(str(folder), run_results(folder, within), noted)


def statistics_of(run: str, results: Sequence[TaskResult], noted: Sequence[Usage] = ()) -> RunStatistics:
    """The figures of the tasks' ``results``; ``noted`` is what each reply cost."""
    firsts = [result.first_correct for result in results]
    usage = total_usage(result.usage for result in results)
    bests = [result.best for result in results]
    return RunStatistics(
        run=run,
        **_figures(bests).model_dump(),
        pass_at_1=None if None in firsts else _mean([float(bool(first)) for first in firsts]),
        steps=max((result.steps for result in results), default=0),
        steps_taken=sum(result.steps for result in results),
        tokens=_tokens(usage),
        usd=None if usage is None else usage.usd,
        per_task=tuple(_row(result) for result in results),
        flagged=sum(bool(best.flags) for best in bests),
        flags=_ranked(Counter(flag for best in bests for flag in best.flags)),
        problem_flagged=sum(bool(best.problem_flags) for best in bests),
        problem_flags=_ranked(Counter(flag for best in bests for flag in best.problem_flags)),
        clean=_figures([result.clean for result in results if DEGENERATE not in result.best.problem_flags]),
        savings=_savings(sum((result.savings for result in results), Savings())),
        paid=_paid(noted) if noted else None,
    )


def _savings(savings: Savings) -> SavingsFigures:
    return SavingsFigures(
        outcomes=_ranked(savings.outcomes),
        evaluations=savings.evaluations,
        saved=_ranked(savings.saved),
        repairs=_ranked(savings.repairs),
    )


def _ranked(counts: Counter[str]) -> dict[str, int]:
    """The most frequent first, names in order where they are equally frequent."""
    return dict(sorted(counts.items(), key=lambda item: (-item[1], item[0])))


def _figures(bests: Sequence[Best]) -> SpeedupFigures:
    correct = sum(best.correct for best in bests)
    speedups = [best.speedup for best in bests if best.speedup is not None]
    known = [best.speedup for best in bests if best.speedup is not None or not best.correct]
    if correct and not speedups:
        known = []
    capped = [min(speedup, SPEEDUP_CAP) for speedup in speedups]
    return SpeedupFigures(
        tasks=len(bests),
        correct=correct,
        accuracy=_mean([float(best.correct) for best in bests]),
        mean_speedup_all=_mean([min(speedup or 0.0, SPEEDUP_CAP) for speedup in known]),
        mean_speedup_correct=_mean(capped),
        mean_unclamped=_mean([speedup or 0.0 for speedup in known]),
        gm10_all=_geometric_mean([min(speedup or FAILED_IN_GM, SPEEDUP_CAP) for speedup in known]),
        gm10_correct=_geometric_mean(capped),
        fast_1_2=_mean([float((speedup or 0.0) > 1.2) for speedup in known]),
        fast_2=_mean([float((speedup or 0.0) > 2.0) for speedup in known]),
    )


def _row(result: TaskResult) -> TaskStatistics:
    level, _, problem_id = result.key.partition("_")
    interval = result.best.interval
    return TaskStatistics(
        level=_number(level),
        problem_id=_number(problem_id),
        correct=result.best.correct,
        speedup=result.best.speedup,
        best_step=result.best.step,
        ci_low=None if interval is None else interval.low,
        ci_high=None if interval is None else interval.high,
        flags=result.best.flags,
        clean_speedup=result.clean.speedup,
        clean_step=result.clean.step,
        problem_flags=result.best.problem_flags,
    )


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _mean(values: Sequence[float]) -> float | None:
    return math.fsum(values) / len(values) if values else None


def _geometric_mean(values: Sequence[float]) -> float | None:
    mean = _mean([math.log(value) for value in values])
    return None if mean is None else math.exp(mean)


def _paid(noted: Sequence[Usage]) -> Paid:
    total = sum(noted, Usage())
    return Paid(requests=len(noted), tokens=_tokens(total), usd=total.usd)


def _tokens(usage: Usage | None) -> Tokens:
    if usage is None:
        return Tokens(input=None, cached=None, written=None, output=None)
    return Tokens(
        input=usage.input_tokens,
        cached=usage.cached_input_tokens,
        written=usage.cache_write_tokens,
        output=usage.output_tokens,
    )
