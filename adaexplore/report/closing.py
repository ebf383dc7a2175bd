"""The report at the end of a run: one row per task, and the paths of the best kernels."""

import shlex
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from textwrap import shorten

from adaexplore.core.step import StepResult
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict
from adaexplore.records.run_records import RunRecords
from adaexplore.records.task_records import TaskRecords
from adaexplore.report.savings import Savings, counts, savings_line
from adaexplore.report.task_result import Best, TaskResult, task_result, total_usage
from adaexplore.report.text import count_of, text_table, wrapped

_FAILURE_CHARS = 60
_SAID_CHARS = 200
_MOST_NOTES = 10


def closing_report(
    folder: Path,
    total_steps: int,
    keys: Sequence[str] | None = None,
    width: int | None = None,
    told: Collection[str] = (),
) -> str:
    """Write the closing table of a run, failures, paths of the best kernels, and the next command.

    Args:
        folder: the run.
        total_steps: steps per task.
        keys: the tasks to show, in this order; by default all that have a folder.
        width: characters per line; None for no limit.
        told: tasks that could not run, whose errors were printed already.

    Raises:
        RecordError: a record is damaged.
    """
    run = RunRecords(folder)
    shown = run.tasks() if keys is None else keys
    records = [run.task(key) for key in shown]
    results = [_without_error(task_result(task, total_steps), told) for task in records]
    notes = [*not_begun(results), *(note for result in results for note in notes_on_best(result))]
    notes += _failure_notes(folder, results)
    savings = savings_line(sum((result.savings for result in results), Savings()))
    if run.environment().get("replay_of"):
        savings = f"{savings} (of the recorded run; a replay asks no judge)"
    closing = [
        *notes,
        f"Outcomes: {counts(_all_statuses(results))}",
        savings,
        _kernel_line(folder, total_steps, records, results),
        f"Next: {_next_command(folder, results)}",
    ]
    return closing_table(results, width) + "\n\n" + wrapped("\n".join(closing), width)


def _without_error(result: TaskResult, told: Collection[str]) -> TaskResult:
    if result.failure is None or result.key not in told:
        return result
    return replace(result, failure=replace(result.failure, message=""))


def closing_table(results: Sequence[TaskResult], width: int | None = None) -> str:
    """Format one row per task: best speedup, steps, count of each status, cost; then totals of several."""
    rows = [
        [result.key, best_text(result), str(result.steps), _statuses(result, width), cost_text(result.usage)]
        for result in results
    ]
    if len(results) > 1:
        correct = sum(result.best.correct for result in results)
        total = total_usage(result.usage for result in results)
        steps = sum(result.steps for result in results)
        share = f"{correct} of {len(results)} correct"
        rows.append(["total", share, str(steps), counts(_all_statuses(results)), cost_text(total)])
    header = ["task", "best", "steps", "outcomes", "cost"]
    return wrapped(text_table(header, rows, width, optional=("outcomes", "cost")), width)


def not_begun(results: Sequence[TaskResult]) -> list[str]:
    """Return a line that counts the tasks that were not begun; empty if all were."""
    count = sum(not result.begun for result in results)
    return [not_begun_text(count, len(results))] if count else []


def not_begun_text(count: int, tasks: int) -> str:
    return f"{count} of {count_of(tasks, 'task')} {'was' if count == 1 else 'were'} not begun"


def notes_on_best(result: TaskResult) -> list[str]:
    """Return lines on a task's best kernel: the best on each GPU, then flags and a slow workload."""
    best, clean = result.best, result.clean
    notes = [
        f"{result.key}: the best on {gpu}: {_best_text(on)} (step {on.step})"
        if on.correct
        else f"{result.key}: no kernel is correct on {gpu}"
        for gpu, on in result.by_gpu.items()
    ]
    if best.flags:
        other = "no kernel is without flags"
        if clean.correct:
            where = "" if clean.step is None else f" (step {clean.step})"
            other = f"the best without flags: {_best_text(clean)}{where}"
        notes.append(f"{result.key}: the best kernel is suspect ({', '.join(best.flags)}); {other}")
    if result.problem_flags:
        notes.append(f"{result.key}: the problem is flagged ({', '.join(result.problem_flags)})")
    if best.worst_workload:
        notes.append(f"{result.key}: the best kernel is too slow on {best.worst_workload}")
    return notes


def _failure_notes(folder: Path, results: Sequence[TaskResult]) -> list[str]:
    """Return a line for each task without a correct kernel: its most frequent failure, text and folder."""
    failed = [result for result in results if not result.best.correct]
    notes = []
    for result in failed[:_MOST_NOTES]:
        common = result.common_failure
        if result.failure is not None:
            notes += [f"{result.key}: {result.failure.message}"] if result.failure.message else []
        elif common is not None:
            said = shorten(common.text, _SAID_CHARS, placeholder="...")
            times = f"{common.times} of {count_of(result.steps, 'step')}"
            notes.append(
                f"{result.key}: no correct kernel; most often {common.status} ({times}), "
                f"the last time in step {common.step}{said and ': '}{said}; see {folder / result.key}"
            )
    if len(failed) > _MOST_NOTES:
        notes.append(f"{count_of(len(failed) - _MOST_NOTES, 'more task')} without a correct kernel")
    return notes


def _next_command(folder: Path, results: Sequence[TaskResult]) -> str:
    """Return the command that shows the best kernel or the figures, or why a task failed if all did."""
    run = shlex.quote(str(folder))
    if len(results) == 1 or not any(result.best.correct for result in results):
        return f"adaexplore show {run} {shlex.quote(results[0].key)}" if results else f"adaexplore show {run}"
    return f"adaexplore show {run}, or adaexplore stats {run}"


def best_text(result: TaskResult) -> str:
    """``1.53x``, ``correct (interpreter)``, ``correct (not timed)``, ``none correct``, ``not run``.

    ``not begun`` if the run stopped before the task. ``1.53x (1.50-1.56)`` with a confidence interval;
    ``suspect`` follows if there are flags.
    """
    if result.best.correct:
        return _best_text(result.best)
    if not result.begun:
        return "not begun"
    return "not run" if result.failure is not None and not result.steps else "none correct"


def result_text(result: StepResult) -> str:
    """Return :func:`verdict_text` of a step's own kernel, or why it has none."""
    return result.name if result.verdict is None else verdict_text(result.verdict)


def verdict_text(verdict: Verdict | None) -> str:
    """Return :func:`best_text` of a verdict; the status of a failure, or ``-``."""
    if verdict is None:
        return "-"
    if not verdict.correct:
        return verdict.status.value
    return _best_text(Best().or_better(None, verdict))


def cost_text(usage: Usage | None) -> str:
    """``$0.0123, 4,200 + 900 tokens``; without the price if it is unknown."""
    if usage is None:
        return "-"
    tokens = f"{usage.input_tokens:,} + {usage.output_tokens:,} tokens"
    return tokens if usage.usd is None else f"${usage.usd:.4f}, {tokens}"


def _best_text(best: Best) -> str:
    """Describe the speed of a correct candidate."""
    if best.speedup is None:
        text = "correct (interpreter)" if best.interpreted else "correct (not timed)"
    elif best.interval is None:
        text = f"{best.speedup:.2f}x"
    else:
        text = f"{best.speedup:.2f}x ({best.interval.low:.2f}-{best.interval.high:.2f})"
    return f"{text} suspect" if best.flags else text


def _statuses(result: TaskResult, width: int | None) -> str:
    if result.failure is None or not result.failure.message:
        return counts(result.statuses)
    failure = result.failure.message.rpartition(".py: ")[2]
    if width is not None:
        failure = shorten(failure, _FAILURE_CHARS, placeholder="...")
    return f"{counts(result.statuses)}; {failure}" if result.statuses else failure


def _all_statuses(results: Sequence[TaskResult]) -> Counter[str]:
    return sum((result.statuses for result in results), Counter())


def _kernel_line(
    folder: Path, total_steps: int, records: Sequence[TaskRecords], results: Sequence[TaskResult]
) -> str:
    solved = [(task, result) for task, result in zip(records, results, strict=True) if result.best.correct]
    if not solved:
        return "No task has a correct kernel yet."
    task, result = solved[0]
    path = task.best_kernel_path(total_steps)
    if len(solved) > 1:
        return f"Best kernels: {folder}/*/{path.name}"
    if not path.is_file() and result.best.step is not None:
        path = task.kernel_path(result.best.step)
    return f"Best kernel: {path}"
