"""``adaexplore re-evaluate``: judge the best kernels of a run again."""

from __future__ import annotations

import argparse
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.cli.options import add_judge, add_set, overrides
from adaexplore.cli.output import columns, progress, show
from adaexplore.core.errors import ProblemError, UsageError
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import DtypeName
from adaexplore.judge_client.protocol import Judge
from adaexplore.records.layout import CONFIG
from adaexplore.records.run_records import RunRecords
from adaexplore.records.task_records import TaskRecords
from adaexplore.report.closing import verdict_text
from adaexplore.report.task_result import task_result
from adaexplore.report.text import text_table
from adaexplore.report.verdict_page import flag_lines
from adaexplore.run.build import open_judge
from adaexplore.settings.config import RunConfig
from adaexplore.settings.load import load_config

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Again:
    """A task's best kernel, judged then and now; ``now`` is None where it could not be judged."""

    key: str
    step: int | None
    then: Verdict | None
    now: Verdict | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("run_dir", type=Path, metavar="RUN", help="run directory")
    parser.add_argument(
        "--step", type=int, default=None, metavar="N", help="the best within the first N steps"
    )
    add_set(parser)
    add_judge(parser)


def run(args: argparse.Namespace) -> int:
    """Judge every task's best kernel and write what came out beside it; prints both figures."""
    if args.step is not None and args.step < 1:
        raise UsageError(f"--step must be at least 1, not {args.step}")
    records = RunRecords.existing(args.run_dir)
    config = _config(records, overrides(args))
    with (
        records.lock(),
        open_judge(config, args.run_dir / "judge.log", threading.Event(), force=True) as access,
    ):
        keys, found = records.tasks(), []
        with progress(len(keys), "task") as bar:
            for key in keys:
                found.append(
                    _judge_again(records.task(key), access.of_worker(0), config.dtype_str, args.step)
                )
                bar.update()
    show(_table(found, columns()))
    return 0 if all(item.now is not None for item in found if item.step) else ProblemError.exit_code


def _table(found: Sequence[Again], width: int | None) -> str:
    """A row a task; below it what speaks against a kernel."""
    rows = [
        [
            item.key,
            str(item.step or "-"),
            verdict_text(item.then),
            verdict_text(item.now),
            (item.now.tier if item.now is not None else None) or "-",
        ]
        for item in found
    ]
    table = text_table(["task", "step", "recorded", "re-evaluated", "precision"], rows, width)
    flags = [f"{item.key}: {line}" for item in found if item.now is not None for line in flag_lines(item.now)]
    return "\n".join([table, "", *flags] if flags else [table])


def _config(records: RunRecords, given: list[str]) -> RunConfig:
    """The run's own settings; a run of the release, whose file holds other keys, takes the defaults."""
    ours = bool(records.environment())
    return load_config(records.folder / CONFIG if ours else None, given)


def _judge_again(records: TaskRecords, judge: Judge, dtype: DtypeName, within: int | None) -> Again:
    key = records.folder.name
    result = task_result(records, within)
    if result.best.step is None:
        return Again(key, None, None, None)
    step = result.best.step
    then = next(record for record in records.steps() if record.node.plan.step == step)
    level, _, problem_id = key.partition("_")
    path = records.kernel_path(step)
    task = Task(int(level), problem_id, key, records.reference(), dtype, path)
    try:
        now = judge.evaluate(task, then.draft.source)
    except ProblemError as problem:
        logger.error("task %s: %s", key, problem)
        return Again(key, step, then.verdict, None)
    records.write_re_evaluation(result.steps, now, path)
    return Again(key, step, then.verdict, now)
