"""The figures of a run, by the definitions of the paper's evaluation."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict

from adaexplore.core.errors import UsageError
from adaexplore.core.usage import Usage
from adaexplore.records.run_records import RunRecords
from adaexplore.report.figures import Metric, SpeedupFigures, mean, score_sheet, speedup_figures
from adaexplore.report.savings import Savings, ranked
from adaexplore.report.task_result import TaskResult, task_result, total_usage

KERNELBENCH = "KB"


class _Figures(BaseModel):
    model_config = ConfigDict(frozen=True)


class BestOnGpu(_Figures):
    correct: bool
    speedup: float | None
    step: int | None


class TaskStatistics(_Figures):
    """One task's row; numeric ids are integers.

    ``ci_low`` and ``ci_high`` bound the speedup if the judge gave an interval. ``flags`` are suspect flags of
    the best kernel; ``clean_speedup`` and ``clean_step`` belong to the best kernel without any.
    ``problem_flags`` are the judge's flags of the problem; ``worst_workload`` is one on which the best
    kernel is slower than the reference. ``by_gpu`` has the best kernel on each GPU of a run with several
    models.
    """

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
    worst_workload: str = ""
    by_gpu: dict[str, BestOnGpu] = {}


class Tokens(_Figures):
    """Tokens of all requests; None if not recorded.

    ``cached`` (read from the cache) and ``written`` (added to the cache) are parts of the input.
    """

    input: int | None = None
    cached: int | None = None
    written: int | None = None
    output: int | None = None


class Paid(_Figures):
    """The cost of all replies in a run's own sessions, whether or not a step recorded them."""

    requests: int
    tokens: Tokens
    usd: float | None


class _OfARun(BaseModel):
    """Base class that puts ``run`` first, in JSON and in tables."""

    run: str


class RunStatistics(SpeedupFigures, _OfARun):
    """Figures of a run within ``steps`` steps; None is a figure that does not apply."""

    # share of tasks whose first step with a model is correct; None if steps are not recorded
    pass_at_1: float | None
    steps: int  # number of steps that the figures cover: the most that a task took within the requested limit
    steps_taken: int  # number of steps of all tasks, as the closing report of a run counts them
    tokens: Tokens  # tokens of these steps
    usd: float | None  # cost of these steps; None if a part of it is unknown
    per_task: tuple[TaskStatistics, ...]  # the tasks, in natural order
    flagged: int  # tasks whose best kernel carries suspect flags
    flags: dict[str, int]  # how many tasks carry each flag
    problem_flagged: int  # tasks whose problem carries flags, solved or not
    problem_flags: dict[str, int]  # how many tasks carry each flag
    # the same figures without kernels that carry suspect flags; tasks whose problem is degenerate are left
    # out
    clean: SpeedupFigures
    savings: Savings  # outcomes of the model's replies, and the evaluations that checks saved
    # cost of all replies, including those lost when the run was killed and those about rules, but not of
    # steps copied from another run. None if it was not recorded
    paid: Paid | None
    benchmark: str  # where the tasks come from, as ``test_source`` names it
    score_sheet: tuple[Metric, ...]  # the published figures of this benchmark
    not_begun: int  # tasks that the run stopped before; they count as failed


def run_results(folder: Path, within: int | None = None) -> list[TaskResult]:
    """Return the results of all tasks of the run in ``folder`` after ``within`` steps, in natural order.

    Raises:
        UsageError: ``within`` is below 1.
        RecordError: ``folder`` is not a run, or a record in it is damaged.
    """
    if within is not None and within < 1:
        raise UsageError(f"--step must be at least 1, not {within}")
    run = RunRecords.existing(folder)
    return [task_result(run.task(key), within) for key in run.planned()]


def run_statistics(folder: Path, within: int | None = None) -> RunStatistics:
    """Compute the figures of the run in ``folder`` within its first ``within`` steps (default: all recorded).

    Raises:
        UsageError: ``within`` is below 1.
        RecordError: ``folder`` is not a run, or a record in it is damaged.
        StorageError: its cost cannot be read.
    """
    records = RunRecords(folder)
    noted = [usage for _, usage in records.usage()]
    benchmark = str(records.settings().get("test_source", KERNELBENCH))
    return statistics_of(str(folder), run_results(folder, within), noted, benchmark)


def statistics_of(
    run: str, results: Sequence[TaskResult], noted: Sequence[Usage] = (), benchmark: str = KERNELBENCH
) -> RunStatistics:
    """Compute the figures of the tasks' ``results``; ``noted`` holds each reply's cost."""
    firsts = [result.first_correct for result in results]
    usage = total_usage(result.usage for result in results)
    bests = [result.best for result in results]
    counted = [result for result in results if not result.degenerate]
    clean = [result.clean for result in counted]
    called, clean_called = [result.ran for result in results], [result.clean_ran for result in counted]
    return RunStatistics(
        run=run,
        **speedup_figures(bests).model_dump(),
        pass_at_1=None if None in firsts else mean([float(bool(first)) for first in firsts]),
        steps=max((result.steps for result in results), default=0),
        steps_taken=sum(result.steps for result in results),
        tokens=_tokens(usage),
        usd=None if usage is None else usage.usd,
        per_task=tuple(_row(result) for result in results),
        flagged=sum(bool(best.flags) for best in bests),
        flags=ranked(Counter(flag for best in bests for flag in best.flags)),
        problem_flagged=sum(bool(result.problem_flags) for result in results),
        problem_flags=ranked(Counter(flag for result in results for flag in result.problem_flags)),
        clean=speedup_figures(clean),
        savings=sum((result.savings for result in results), Savings()),
        paid=_paid(noted) if noted else None,
        benchmark=benchmark,
        score_sheet=score_sheet(benchmark, bests, clean, called, clean_called),
        not_begun=sum(not result.begun for result in results),
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
        problem_flags=result.problem_flags,
        worst_workload=result.best.worst_workload,
        by_gpu={
            gpu: BestOnGpu(correct=best.correct, speedup=best.speedup, step=best.step)
            for gpu, best in result.by_gpu.items()
        },
    )


def _number(text: str) -> int | str:
    return int(text) if text.isdecimal() else text


def _paid(noted: Sequence[Usage]) -> Paid:
    total = sum(noted, Usage())
    return Paid(requests=len(noted), tokens=_tokens(total), usd=total.usd)


def _tokens(usage: Usage | None) -> Tokens:
    if usage is None:
        return Tokens()
    return Tokens(
        input=usage.input_tokens,
        cached=usage.cached_input_tokens,
        written=usage.cache_write_tokens,
        output=usage.output_tokens,
    )
