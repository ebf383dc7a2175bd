"""``adaexplore run``: search for faster kernels."""

from __future__ import annotations

import argparse
import json
import logging
import os
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from adaexplore.cli.dry_run import dry_run
from adaexplore.cli.options import add_config, add_short, configuration
from adaexplore.cli.output import columns, progress, show
from adaexplore.cli.stopping import stop_on_signals
from adaexplore.core.errors import (
    AnswersPending,
    BudgetReached,
    ConfigError,
    Interrupted,
    ProblemError,
    UsageError,
)
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.judge_client.access import judge_packages
from adaexplore.records.layout import CONFIG
from adaexplore.records.recorded import recorded_tasks
from adaexplore.records.run_records import RunRecords
from adaexplore.report.closing import closing_report
from adaexplore.run.batch import Progress
from adaexplore.run.origin import Fork
from adaexplore.run.session import Session, open_session
from adaexplore.run.vendors import vendor_of
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import read_environment
from adaexplore.settings.paths import run_directory
from adaexplore.tasks.sources import load_tasks

logger = logging.getLogger(__name__)

_TASK = "task="
_CHOOSING = ("test_list_path=", "level=", "problem_id=", "problem_root=", "test_source=")
"""Overrides that choose tasks, besides the key ``task``."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    add_short(parser, "steps", "out", "model", "offline")
    parser.add_argument(
        "--task",
        action="extend",
        nargs="+",
        metavar="PATH",
        help="run these problem files, or all problems of a folder; a file defines Model, get_inputs and "
        "get_init_inputs (repeatable; same as the key task)",
    )
    parser.add_argument(
        "--fork",
        type=Path,
        metavar="RUN",
        help="start a new run from the first steps (--at) of RUN, with its settings and those of --set",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="print an estimate of requests, tokens and cost, then exit"
    )
    parser.add_argument(
        "--at", type=int, metavar="STEP", help="number of steps of each task that --fork copies"
    )


def run(args: argparse.Namespace) -> int:
    """Run the search; print a table of results and the paths of the best kernels."""
    if (args.fork is None) != (args.at is None):
        raise UsageError("--fork RUN and --at STEP go together")
    fork = None if args.fork is None else Fork(args.fork, args.at)
    config = configuration(args, args.config, *_chosen(args)) if fork is None else _forked(fork, args)
    if config.direction != "forward" and not vendor_of(config.server_type).writes_backward:
        raise ConfigError(
            f"direction: server_type '{config.server_type}' writes no backward passes; use another one"
        )
    if config.debug:
        logging.getLogger().setLevel(logging.DEBUG)
    if fork is None or args.config is not None or args.task or _overridden(args, _TASK, *_CHOOSING):
        packages = judge_packages(config)
        tasks = load_tasks(config, read_environment(os.environ), judge_packages=packages)
    else:
        tasks = recorded_tasks(RunRecords.existing(fork.run), config.dtype_str, config.direction)
        tasks = [task for task in tasks if task.reference]
    if args.dry_run:
        show(dry_run(config, tasks, run_directory(config, datetime.now()), fork))
        return 0
    return carry_out(config, tasks, fork=fork)


def _chosen(args: argparse.Namespace) -> list[str]:
    """Return the setting of the key ``task``; other chosen tasks replace those of a recorded run."""
    given = _overridden(args, _TASK)
    if args.task and given:
        raise UsageError("--task and --set task=... both choose tasks; leave one of them out")
    if args.task:
        return [_TASK + json.dumps(args.task)]
    return [f"{_TASK}null"] if _overridden(args, *_CHOOSING) and not given else []


def _overridden(args: argparse.Namespace, *keys: str) -> bool:
    return any(text.startswith(keys) for text in args.set)


def carry_out(
    config: RunConfig,
    tasks: Sequence[Task],
    *,
    fork: Fork | None = None,
    replayed: RunRecords | None = None,
) -> int:
    """Execute a run, show its progress, print the closing report, and return the exit code."""
    folder = run_directory(config, datetime.now())
    code, spent = 0, None
    refused: set[str] = set()
    try:
        with (
            stop_on_signals("finished steps") as stop,
            open_session(config, tasks, folder, stop, fork=fork, replayed=replayed) as session,
        ):
            logger.info("run directory: %s", folder)
            code = _follow(session, refused)
    except BudgetReached as reached:
        spent = BudgetReached(f"{reached}; to continue, raise the limit and set save_path={folder}")
    except AnswersPending as pending:
        goes_on = "the same command continues" if config.save_path else f"--set save_path={folder} continues"
        raise AnswersPending(f"{pending}; then {goes_on}", pending.prompts) from pending
    except Interrupted as stopped:
        if config.save_path is not None:
            raise
        raise Interrupted(f"stopped; to continue, add --set save_path={folder}") from stopped
    keys = [task.key for task in tasks]
    print(closing_report(folder, config.total_steps, keys, columns(), refused))  # noqa: T201
    if spent is not None:
        raise spent
    return code


def _forked(fork: Fork, args: argparse.Namespace) -> RunConfig:
    """Load the settings of a fork from ``--config`` or the forked run, with a new run directory."""
    if fork.at < 1:
        raise UsageError(f"--at must be at least 1, not {fork.at}")
    RunRecords.existing(fork.run)
    path = args.config or fork.run / CONFIG
    config = configuration(args, path, "save_path=null", "resume_from=null", *_chosen(args))
    if config.save_path is not None and Path(config.save_path).resolve() == fork.run.resolve():
        raise UsageError(f"--fork: {fork.run} cannot be forked into itself; choose another save_path")
    return config


def _follow(session: Session, refused: set[str]) -> int:
    """Show progress until the run ends; return the exit code: 1 if no task has a correct kernel.

    Tasks that could not run are added to ``refused``.
    """
    total = len(session.tasks) * session.config.total_steps
    best: dict[str, float] = {}
    edits_failed: set[tuple[str, int]] = set()
    with logging_redirect_tqdm(), progress(total, "step") as bar:
        for news in session.progress():
            if news.problem is not None:
                refused.add(news.task.key)
                logger.error("task %s: %s", news.task.key, news.problem)
            _show(bar, session, news, best, edits_failed)
    if refused:
        return ProblemError.exit_code
    return 0 if best else 1


def _show(
    bar: tqdm[NoReturn],
    session: Session,
    news: Progress[StepRecord],
    best: dict[str, float],
    edits_failed: set[tuple[str, int]],
) -> None:
    """Add a step to ``best`` or ``edits_failed``, and show these on the bar."""
    record = news.result
    if record is None or record.node.plan.step == 0:
        return
    verdict = record.result.verdict
    if verdict is not None and verdict.correct:
        best[news.task.key] = max(best.get(news.task.key, 0.0), verdict.speedup or 0.0)
    if record.result.edit_failed:
        edits_failed.add((news.task.key, record.node.plan.step))
    usage = session.usage
    fastest = max(best.values(), default=0.0)
    cost = "unknown" if usage.usd is None else f"${usage.usd:.2f}"
    shown = {"correct": f"{len(best)}/{len(session.tasks)}", "cost": cost}
    failed = {"edits failed": str(len(edits_failed))} if edits_failed else {}
    bar.set_postfix(shown | ({"best": f"{fastest:.2f}x"} if fastest else {}) | failed, refresh=False)
    bar.update()
