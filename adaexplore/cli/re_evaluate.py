"""``adaexplore re-evaluate``: judge the best kernels of a run again."""

import argparse
import logging
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from adaexplore.cli.options import add_judge, add_set, configuration
from adaexplore.cli.output import columns, progress, show
from adaexplore.cli.saved import re_evaluate_saved
from adaexplore.core.errors import ProblemError, UsageError
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.access import open_judge
from adaexplore.judge_client.protocol import Judge
from adaexplore.records.layout import CONFIG
from adaexplore.records.recorded import recorded_task
from adaexplore.records.run_records import RunRecords
from adaexplore.records.task_records import TaskRecords
from adaexplore.report.closing import verdict_text
from adaexplore.report.task_result import task_result
from adaexplore.report.text import text_table
from adaexplore.report.verdict_page import flag_lines
from adaexplore.settings.config import RunConfig

logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Again:
    """A task's best kernel with old and new verdict; ``now`` is None if the problem could not be judged."""

    key: str
    step: int | None
    then: Verdict | None
    now: Verdict | None


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("run_dir", nargs="?", type=Path, metavar="RUN", help="run directory")
    parser.add_argument(
        "--saved",
        type=Path,
        metavar="DIR",
        help="judge the kernels of this folder, level<N>/<problem id>.py, instead of a run",
    )
    parser.add_argument(
        "--tasks", type=Path, metavar="LIST", help="with --saved: only kernels of this test list"
    )
    parser.add_argument(
        "--out",
        type=Path,
        metavar="DIR",
        help="with --saved: folder for tables and verdicts, new or to continue "
        "(default: outputs/re-evaluated)",
    )
    parser.add_argument("--step", type=int, metavar="N", help="take the best kernel of the first N steps")
    add_set(parser)
    add_judge(parser)


def run(args: argparse.Namespace) -> int:
    """Judge every task's best kernel again, write the verdict beside it, and print both figures."""
    if (args.run_dir is None) == (args.saved is None):
        raise UsageError("name a run directory, or a folder of kernels with --saved DIR")
    foreign = [args.step] if args.saved is not None else [args.tasks, args.out]
    if any(each is not None for each in foreign):
        raise UsageError("--step belongs to a run directory, --tasks and --out to --saved DIR")
    if args.saved is not None:
        out = args.out or Path("outputs/re-evaluated")
        config = configuration(args, None)
        if config.test_source not in ("KB", "SYN"):
            raise UsageError(f"--saved judges kernels of KernelBench or SYN, not of {config.test_source}")
        return re_evaluate_saved(config, args.saved, args.tasks, out)
    if args.step is not None and args.step < 1:
        raise UsageError(f"--step must be at least 1, not {args.step}")
    records = RunRecords.existing(args.run_dir)
    if records.environment():
        config = configuration(args, records.folder / CONFIG)
    else:  # a run of the release, whose file has other keys
        config = configuration(args, None, "preset=paper")
    with (
        records.lock(),
        open_judge(config, args.run_dir / "judge.log", threading.Event(), force=True) as access,
    ):
        keys, found = records.tasks(), []
        with progress(len(keys), "task") as bar:
            for key in keys:
                found.append(_judge_again(records.task(key), access.first, config, args.step))
                bar.update()
    show(_table(found, columns()))
    return 0 if all(item.now is not None for item in found if item.step) else ProblemError.exit_code


def _table(found: Sequence[Again], width: int | None) -> str:
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


def _judge_again(records: TaskRecords, judge: Judge, config: RunConfig, within: int | None) -> Again:
    key = records.folder.name
    result = task_result(records, within)
    if result.best.step is None:
        return Again(key, None, None, None)
    step = result.best.step
    then = next(record for record in records.steps() if record.node.plan.step == step)
    task = recorded_task(records, config.dtype_str, config.direction)
    try:
        now = judge.evaluate(task, then.draft.source)
    except ProblemError as problem:
        logger.error("task %s: %s", key, problem)
        return Again(key, step, then.verdict, None)
    records.write_re_evaluation(result.steps, now, records.kernel_path(step))
    return Again(key, step, then.verdict, now)
