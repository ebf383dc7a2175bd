"""``adaexplore re-evaluate --saved``: judge a folder of kernels."""

import json
import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from adaexplore.cli.output import columns, progress, show
from adaexplore.cli.stopping import stop_on_signals
from adaexplore.core.errors import ProblemError, UsageError
from adaexplore.core.files.atomic import locked, write_text
from adaexplore.core.files.json_lines import JsonLines
from adaexplore.core.metrics import from_metrics, to_metrics
from adaexplore.core.task import Task
from adaexplore.core.text.identity import text_digest
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.access import JudgeAccess, open_judge
from adaexplore.report.categories import Judged, by_category, category_table
from adaexplore.report.closing import verdict_text
from adaexplore.report.figures import score_sheet
from adaexplore.report.tables import markdown_table, sheet_table
from adaexplore.report.task_result import Best, calls_ran
from adaexplore.report.text import NONE, text_table
from adaexplore.run.batch import run_batch
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import read_environment
from adaexplore.tasks.categories import category_of
from adaexplore.tasks.saved_kernels import SavedKernel, saved_kernels
from adaexplore.tasks.sources import load_tasks
from adaexplore.tasks.test_list import Selection, read_test_list

logger = logging.getLogger(__name__)

TABLE = "table.md"
VERDICTS = "verdicts.jsonl"
_POLICY = ("dtype_str", "direction", "tier", "tolerance", "tf32", "baseline", "gpu_name", "tune_s")


@dataclass(frozen=True)
class JudgedKernel:
    """A saved kernel's verdict; None if its problem could not be judged, with the reason in ``error``."""

    kernel: SavedKernel
    task: Task
    verdict: Verdict | None
    error: str = ""


_Table = tuple[list[str], list[list[str]]]


def re_evaluate_saved(config: RunConfig, folder: Path, chosen: Path | None, out: Path) -> int:
    """Judge the kernels in ``folder``, print tables, and write tables and verdicts to ``out``.

    Kernels that the test list ``chosen`` does not name are skipped; existing verdicts in ``out`` are used.
    """
    kernels = saved_kernels(folder)
    if chosen is not None:
        selected = read_test_list(chosen)
        kernels = [kernel for kernel in kernels if _is_in(kernel, selected)]
    if not kernels:
        raise UsageError(f"{folder} holds no kernel of {chosen}; name other problems with --tasks")
    selections = [Selection(each.level, (each.problem_id,), str(each.path)) for each in kernels]
    tasks = load_tasks(config, read_environment(os.environ), selections)
    busy = f"another process writes to {out}; wait for it or name another folder with --out"
    found: list[JudgedKernel] = []
    with (
        locked(out / "lock", "name another folder with --out", busy),
        stop_on_signals("verdicts") as stop,
        open_judge(config, out / "judge.log", stop, force=True) as access,
        progress(len(tasks), "kernel") as bar,
    ):
        hardware = access.identity.hardware
        for each in _judge(kernels, tasks, config, access, out, stop):
            found.append(each)
            if each.error:
                logger.error("task %s: %s", each.task.key, each.error)
            bar.update()
    found.sort(key=lambda each: (each.kernel.level, each.kernel.problem_id))
    tables = _tables(found)
    settings = f"{config.dtype_str}, tier {config.tier}, tf32 {config.tf32}, baseline {config.baseline}"
    judged = sum(each.verdict is not None for each in found)
    title = f"{judged} of {len(found)} kernels of {folder}, judged on {hardware} ({settings})"
    written = [markdown_table(*table) for table in tables]
    write_text(out / TABLE, "\n\n".join([f"# {title}", *written]) + "\n")
    width = columns()
    show(title)
    print("\n\n".join(text_table(*table, width) for table in tables))  # noqa: T201
    show(f"\nTables: {out / TABLE}, verdicts: {out / VERDICTS}")
    return ProblemError.exit_code if any(each.error for each in found) else 0


def _judge(
    kernels: Sequence[SavedKernel],
    tasks: Sequence[Task],
    config: RunConfig,
    access: JudgeAccess,
    out: Path,
    stop: threading.Event,
) -> Iterator[JudgedKernel]:
    """Judge each kernel without a verdict in ``out``; yield all verdicts, old and new.

    An old verdict counts if kernel, reference, settings and the judge's hardware are the same. Each new one
    is stored at once, so a stop loses nothing.

    Raises:
        Interrupted: ``stop`` was set.
        JudgeError: the judge failed in spite of retries.
    """
    lines = JsonLines(out / VERDICTS)
    judge = {"hardware": access.identity.hardware, "versions": access.identity.versions}
    policy = config.model_dump(include=set(_POLICY)) | judge
    known = dict(lines.read(lambda line: (line["id"], from_metrics(line["metrics"]))))
    by_key, waiting = {kernel.key: kernel for kernel in kernels}, []

    def judged(task: Task, identity: str) -> Iterator[Verdict]:
        kernel = by_key[task.key]
        with access.turn() as judge:
            verdict = judge.evaluate(task, kernel.source)
        lines.append(_line(identity, kernel, task, policy, verdict))
        yield verdict

    for task in tasks:
        kernel = by_key[task.key]
        parts = [task.key, kernel.source, task.judged_reference, task.hidden_workloads, policy]
        identity = text_digest(json.dumps(parts))
        if identity in known:
            yield JudgedKernel(kernel, task, known[identity])
        else:
            waiting.append((task, judged(task, identity)))
    for news in run_batch(waiting, config.num_processes, stop):
        if news.result is not None or news.problem is not None:
            yield JudgedKernel(by_key[news.task.key], news.task, news.result, str(news.problem or ""))


def _line(
    identity: str, kernel: SavedKernel, task: Task, policy: Mapping[str, Any], verdict: Verdict
) -> dict[str, Any]:
    return {
        "id": identity,
        "key": kernel.key,
        "problem": task.name,
        "kernel": str(kernel.path),
        "published": kernel.published,
        "speedup": verdict.speedup,
        **policy,
        "metrics": to_metrics(verdict),
    }


def _is_in(kernel: SavedKernel, chosen: Sequence[Selection]) -> bool:
    return any(
        kernel.level == line.level and (line.problem_ids is None or kernel.problem_id in line.problem_ids)
        for line in chosen
    )


def _tables(found: Sequence[JudgedKernel]) -> list[_Table]:
    """Return one row per kernel, and the figures of each level and category over judged kernels."""
    counted = [(each, each.verdict) for each in found if each.verdict is not None]
    levels = sorted({each.kernel.level for each, _ in counted})
    by_level = {level: [found for each, found in counted if each.kernel.level == level] for level in levels}
    sheets = [_sheet(level, verdicts) for level, verdicts in by_level.items()]
    judged = [
        Judged(each.task.reference, category_of(each.task.reference), Best().or_better(None, verdict))
        for each, verdict in counted
    ]
    return [_kernels(found), *sheets, category_table(by_category(judged))]


def _kernels(found: Sequence[JudgedKernel]) -> _Table:
    rows = []
    for each in found:
        published = each.kernel.published
        flags = [] if each.verdict is None else [flag.id for flag in each.verdict.flags]
        problem = [] if each.verdict is None else [flag.id for flag in each.verdict.problem_flags]
        rows.append(
            [
                each.kernel.key,
                NONE if published is None else f"{published:.2f}x",
                "not judged" if each.verdict is None else verdict_text(each.verdict),
                (None if each.verdict is None else each.verdict.tier) or NONE,
                " ".join(flags) or NONE,
                " ".join(problem) or NONE,
            ]
        )
    return ["task", "published", "judged", "precision", "flags", "problem_flags"], rows


def _sheet(level: int, verdicts: Sequence[Verdict]) -> _Table:
    counted = [verdict for verdict in verdicts if not verdict.degenerate]
    bests = [Best().or_better(None, verdict) for verdict in verdicts]
    clean = [Best() if verdict.suspect_flags else Best().or_better(None, verdict) for verdict in counted]
    ran, clean_ran = ([calls_ran(verdict) for verdict in each] for each in (verdicts, counted))
    return sheet_table(
        f"KB level {level}, n={len(verdicts)}", score_sheet("KB", bests, clean, ran, clean_ran)
    )
