"""Statistics as aligned text, JSON, CSV or Markdown."""

import csv
import io
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from enum import StrEnum
from typing import Any

from adaexplore.core.step import NO_KERNEL
from adaexplore.report.categories import CategoryFigures, category_table
from adaexplore.report.closing import not_begun_text
from adaexplore.report.figures import Metric
from adaexplore.report.savings import ranked
from adaexplore.report.statistics import RunStatistics
from adaexplore.report.task_result import TaskResult
from adaexplore.report.text import NONE, text_table, wrapped

_SHARES = {"accuracy", "fast_1_2", "fast_2", "pass_at_1"}
_CLEAN = "clean_"
_HARD_SPACE = "\N{NO-BREAK SPACE}"


_Page = tuple[list[str], list[list[str]], Sequence[str]]
"""Header and rows of a table, and its optional columns."""


class TableFormat(StrEnum):
    TABLE = "table"
    JSON = "json"
    CSV = "csv"
    MD = "md"


def render(runs: Sequence[RunStatistics], table_format: TableFormat, width: int | None = None) -> str:
    """Render the statistics of one or several runs, without a final line end.

    A table has at most ``width`` columns of text: see :func:`~adaexplore.report.text.text_table`.

    JSON is one object for one run and an array for several. CSV has a header and one line per run. A
    table or Markdown page of one run lists its tasks too; a Markdown page of several has a column per run.
    The last table of each run has the published figures of its benchmark. Tables show intervals, flags and
    the figures without flagged kernels only if there are any; JSON and CSV always have them. A last line
    counts tasks that were not begun.
    """
    if table_format is TableFormat.JSON:
        objects = [run.model_dump(mode="json") for run in runs]
        return json.dumps(objects[0] if len(objects) == 1 else objects, indent=2)
    if table_format is TableFormat.CSV:
        return _csv(runs)
    pages = _pages(runs)
    if table_format is TableFormat.MD:
        tables = [(header, rows) for header, rows, _ in pages]
        if len(runs) > 1:
            tables[0] = _turned(*tables[0])
        parts = [markdown_table(*table) for table in tables]
    else:
        parts = [
            wrapped(text_table(header, rows, width, optional), width) for header, rows, optional in pages
        ]
    lines = [
        wrapped(f"{run.run}: {not_begun_text(run.not_begun, run.tasks)}", width)
        for run in runs
        if run.not_begun
    ]
    return "\n\n".join([*parts, *lines])


def render_categories(
    figures: Sequence[CategoryFigures], table_format: TableFormat, width: int | None = None
) -> str:
    """Render the figures of categories, without a final line end; see :func:`render`."""
    if table_format is TableFormat.JSON:
        return json.dumps([asdict(each) for each in figures], indent=2)
    if table_format is TableFormat.CSV:
        return _lines([asdict(each) for each in figures])
    header, rows = category_table(figures)
    return markdown_table(header, rows) if table_format is TableFormat.MD else text_table(header, rows, width)


def _pages(runs: Sequence[RunStatistics]) -> list[_Page]:
    if len(runs) == 1:
        figures = [(*_tasks(runs[0]), ("ci_low", "ci_high", "clean_step")), (*_run_figures(runs[0]), ())]
        return [*figures, (*sheet_table(runs[0].benchmark, runs[0].score_sheet), ())]
    summaries = [_summary(run) for run in runs]
    if any(run.flagged or run.problem_flagged for run in runs):
        summaries = [row | _flag_columns(run) for row, run in zip(summaries, runs, strict=True)]
    header = list(summaries[0]) if summaries else []
    optional = [name for name in header if name.startswith(("paid_", "tokens_"))]
    sheets = [(*sheet_table(f"{run.benchmark}, {run.run}", run.score_sheet), ()) for run in runs]
    return [(header, [[_show(name, row[name]) for name in header] for row in summaries], optional), *sheets]


def sheet_table(title: str, sheet: Sequence[Metric]) -> tuple[list[str], list[list[str]]]:
    """Return a table with one row per published figure, with and without flagged kernels."""
    rows = [
        [each.name, *(_figure(value, each.is_share) for value in (each.value, each.clean))] for each in sheet
    ]
    return [title, "value", "clean"], rows


def _figure(value: float | None, is_share: bool) -> str:
    if value is None:
        return NONE
    return f"{100 * value:.1f}%" if is_share else f"{value:.3f}"


def _tasks(run: RunStatistics) -> tuple[list[str], list[list[str]]]:
    """Return one row per task."""
    header = ["level", "problem_id", "correct", "speedup", "best_step"]
    if any(task.ci_low is not None for task in run.per_task):
        header[4:4] = ["ci_low", "ci_high"]
    if run.flagged:
        header += ["clean_speedup", "clean_step", "flags"]
    if run.problem_flagged:
        header += ["problem_flags"]
    if any(task.worst_workload for task in run.per_task):
        header += ["worst_workload"]
    rows = [[_show(name, getattr(task, name)) for name in header] for task in run.per_task]
    gpus = list(dict.fromkeys(gpu for task in run.per_task for gpu in task.by_gpu))
    for row, task in zip(rows, run.per_task, strict=True):
        bests = [task.by_gpu.get(gpu) for gpu in gpus]
        row += [NONE if best is None else f"{_show('', best.speedup)} (step {best.step})" for best in bests]
    return header + gpus, rows


def _run_figures(run: RunStatistics) -> tuple[list[str], list[list[str]]]:
    """Return one row per figure, with and without flagged kernels."""
    flagged = {"flagged": run.flagged, "problem_flagged": run.problem_flagged}
    without = Counter({name.value: run.savings.outcomes[name] for name in NO_KERNEL})
    optional = {"steps_without_kernel": without.total(), **flagged}
    figures = _summary(run) | {name: count for name, count in optional.items() if count}
    parts = {
        "saved": ranked(run.savings.saved),
        "repairs": ranked(run.savings.repairs),
        "steps_without_kernel": ranked(+without),
        "flagged": run.flags,
        "problem_flagged": run.problem_flags,
    }
    clean = run.clean.model_dump()
    rows = []
    for name, value in figures.items():
        rows.append([name, _show(name, value), _show(name, clean[name]) if name in clean else ""])
        rows += [[f"  {part}", str(count), ""] for part, count in parts.get(name, {}).items()]
    if not any(flagged.values()):
        return ["figure", "value"], [row[:2] for row in rows]
    return ["figure", "value", "clean"], rows


def best_prefix(results: Sequence[TaskResult]) -> dict[str, list[dict[str, Any]]]:
    """Return the best after each step, by task: the content of ``best_prefix.json``.

    Each entry is ``{step, best_step, correct, speedup}``; ``step`` starts at 1. A task without recorded
    steps has no entries.
    """
    return {
        result.key: [
            {"step": step, "best_step": best.step, "correct": best.correct, "speedup": best.speedup}
            for step, best in enumerate(result.curve, start=1)
        ]
        for result in results
    }


def markdown_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(map(_markdown_cell, line)) + " |" for line in lines)


def _markdown_cell(cell: str) -> str:
    """Escape bars, and keep the indent of a part, which Markdown would drop."""
    text = cell.lstrip(" ")
    return _HARD_SPACE * (len(cell) - len(text)) + text.replace("|", "\\|")


def _turned(header: Sequence[str], rows: Sequence[Sequence[str]]) -> tuple[list[str], list[list[str]]]:
    """Exchange rows and columns."""
    turned = [list(line) for line in zip(header, *rows, strict=True)]
    return ["figure", *turned[0][1:]], turned[1:]


def _summary(run: RunStatistics) -> dict[str, Any]:
    """Return the figures of a run over all kernels as one flat row."""
    flags = {"flagged", "flags", "problem_flagged", "problem_flags", "clean", "benchmark", "score_sheet"}
    row = run.model_dump(exclude=flags | {"not_begun", "per_task", "tokens", "usd", "savings", "paid"})
    tokens = {f"tokens_{name}": value for name, value in run.tokens.model_dump().items()}
    saved = {"evaluations": run.savings.evaluations, "saved": run.savings.saved.total()}
    paid: dict[str, Any] = dict.fromkeys(("requests", "tokens_input", "tokens_output", "usd"))
    if run.paid is not None:
        told = run.paid.tokens
        paid = dict(zip(paid, (run.paid.requests, told.input, told.output, run.paid.usd), strict=True))
    return (
        row
        | tokens
        | {"usd": run.usd}
        | saved
        | {"repairs": run.savings.repairs.total()}
        | {f"paid_{name}": value for name, value in paid.items()}
    )


def _flag_columns(run: RunStatistics) -> dict[str, Any]:
    """Return the numbers of flagged kernels and problems, and the figures without them."""
    clean = {f"{_CLEAN}{name}": value for name, value in run.clean.model_dump().items()}
    kernels = {"flagged": run.flagged, "flags": tuple(run.flags)}
    problems = {"problem_flagged": run.problem_flagged, "problem_flags": tuple(run.problem_flags)}
    return kernels | problems | clean


def _csv(runs: Sequence[RunStatistics]) -> str:
    summaries = [_summary(run) | _flag_columns(run) | {"not_begun": run.not_begun} for run in runs]
    for row in summaries:
        row |= {name: " ".join(row[name]) for name in ("flags", "problem_flags")}
    return _lines(summaries)


def _lines(rows: Sequence[Mapping[str, Any]]) -> str:
    """Write rows as CSV, the header first."""
    out = io.StringIO()
    writer = csv.DictWriter(out, list(rows[0]) if rows else [], lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().rstrip("\n")


def _show(name: str, value: object) -> str:
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, tuple):
        return " ".join(value) or NONE
    if not isinstance(value, float):
        return str(value)
    if name.removeprefix(_CLEAN) in _SHARES:
        return f"{100 * value:.1f}%"
    return f"{value:.4f}" if name.endswith("usd") else f"{value:.3f}"
