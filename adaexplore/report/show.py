"""Show a run, a task or a step in the terminal: results, failures, lineage, differences, source.

Functions raise RecordError if a record is damaged.
"""

import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from textwrap import shorten
from typing import Literal

from adaexplore.core.errors import UsageError
from adaexplore.core.step import StepRecord
from adaexplore.core.text.differences import differences_between
from adaexplore.records.run_records import RunRecords
from adaexplore.records.task_records import TaskRecords
from adaexplore.report.closing import best_text, closing_table, not_begun, notes_on_best, result_text
from adaexplore.report.task_result import task_result, why_failed
from adaexplore.report.text import NONE, text_table, wrapped
from adaexplore.report.verdict_page import verdict_page

_LEAST_WHY_CHARS = 30
_BEFORE_WHY = 50


@dataclass(frozen=True)
class Section:
    """A part of a page; ``language`` is its language for highlighting."""

    text: str
    language: Literal["text", "python", "diff"] = "text"


def show_run(run: RunRecords, width: int | None) -> list[Section]:
    """Show one row per task, and the flags of best kernels."""
    results = [task_result(run.task(key), None) for key in run.planned()]
    notes = [*not_begun(results), *(note for result in results for note in notes_on_best(result))]
    table = closing_table(results, width)
    return [Section("\n".join([table, *(["", wrapped("\n".join(notes), width)] if notes else [])]))]


def show_task(records: TaskRecords, width: int | None) -> list[Section]:
    """Show the steps of a task, their failures, and the best kernel with its lineage."""
    steps = {record.node.plan.step: record for record in records.steps()}
    result = task_result(records, None)
    best = None if result.best.step is None else steps[result.best.step]
    lines = [f"{result.key}: {best_text(result)}"]
    if best is not None:
        lines += [f"best kernel: {records.kernel_path(best.node.plan.step)}"]
        lines += [f"lineage: {_lineage(steps, best)}"]
    if result.failure is not None:
        lines += [result.failure.message]
    sections = [Section(wrapped("\n".join([*lines, *notes_on_best(result)]), width))]
    rows = [_row(record, width) for step, record in steps.items() if step > 0]
    if rows:
        header = ["step", "kind", "parent", "result", "why"]
        sections.append(Section(wrapped(text_table(header, rows, width), width)))
    if best is not None:
        sections.append(Section(best.draft.source.strip("\n"), "python"))
    return sections


def show_step(records: TaskRecords, step: int, width: int | None) -> list[Section]:
    """Show a step: its verdict, its lineage, the differences from its parent, and its source.

    Raises:
        UsageError: there is no such step.
    """
    steps = {record.node.plan.step: record for record in records.steps()}
    record = steps.get(step)
    if record is None or step < 1:
        last = max(steps, default=0)
        there = f"its steps are 1 to {last}" if last else "it has no steps"
        raise UsageError(f"{records.folder} has no step {step}; {there}")
    plan = record.node.plan
    origin = f"{plan.kind.label} step, {result_text(record.result)}"
    shown = ", ".join(map(str, (*plan.elite_ids, *plan.context_ids))) or "none"
    lines = [f"step {step}: {origin}", f"kernels shown to the model: {shown}"]
    lines += [f"lineage: {_lineage(steps, record)}", f"file: {records.kernel_path(step)}"]
    sections = [Section(wrapped("\n".join(lines), width))]
    if record.result.verdict is not None:
        sections.append(Section(verdict_page(record.result.verdict, width)))
    elif record.result.why:
        sections.append(Section(wrapped(f"no new kernel: {record.result.why}", width)))
    parent = steps.get(plan.parent_id)
    if parent is not None and parent.draft.source and plan.parent_id != step:
        changed = differences_between(parent.draft.source, record.draft.source)
        sections.append(Section(f"Differences from step {plan.parent_id}:" + ("" if changed else " none")))
        sections.append(Section(changed, "diff"))
    sections.append(Section(record.draft.source.strip("\n"), "python"))
    return [section for section in sections if section.text]


def find_task(run: RunRecords, key: str) -> TaskRecords:
    """Return the records of a task.

    Raises:
        UsageError: the run has no such task.
    """
    known = run.planned()
    if key not in known:
        near = difflib.get_close_matches(key, known, n=1)
        there = f"did you mean {near[0]}?" if near else f"it has {', '.join(known[:10]) or 'none'}"
        raise UsageError(f"{run.folder} has no task {key!r}; {there}")
    return run.task(key)


def _row(record: StepRecord, width: int | None) -> list[str]:
    plan = record.node.plan
    why = why_failed(record.result)
    if width is not None:
        why = shorten(why, max(width - _BEFORE_WHY, _LEAST_WHY_CHARS), placeholder="...")
    named = [str(plan.step), plan.kind.label, str(plan.parent_id or NONE)]
    return [*named, result_text(record.result), why or NONE]


def _lineage(steps: Mapping[int, StepRecord], record: StepRecord) -> str:
    """Format the path from a large step to ``record``, such as ``1 (compile) > 4 (1.53x)``."""
    chain: list[StepRecord] = []
    node: StepRecord | None = record
    while node is not None and node.node.plan.step > 0 and node not in chain:
        chain.append(node)
        node = steps.get(node.node.plan.parent_id)
    return " > ".join(f"{each.node.plan.step} ({result_text(each.result)})" for each in reversed(chain))
