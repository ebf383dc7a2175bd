"""``adaexplore run``: search for faster kernels."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from types import FrameType
from typing import NoReturn

from tqdm import tqdm
from tqdm.contrib.logging import logging_redirect_tqdm

from adaexplore.core.errors import Interrupted, ProblemError
from adaexplore.report.closing import closing_report
from adaexplore.run.batch import Progress
from adaexplore.run.session import Session, open_session
from adaexplore.settings.environment import read_environment
from adaexplore.settings.load import load_config
from adaexplore.settings.paths import run_directory
from adaexplore.tasks.sources import load_tasks, task_from_file

logger = logging.getLogger(__name__)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the command's arguments."""
    parser.add_argument("--config", type=Path, default=None, help="YAML file; without one, defaults")
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="override one key (repeatable)"
    )
    parser.add_argument(
        "--task",
        type=Path,
        default=None,
        metavar="FILE.py",
        help="run this one file, which defines Model, get_inputs and get_init_inputs",
    )


def run(args: argparse.Namespace) -> int:
    """Run the search; prints a table of results and the paths of the best kernels."""
    config = load_config(args.config, args.set)
    if config.debug:
        logging.getLogger().setLevel(logging.DEBUG)
    if args.task is not None:
        tasks = [task_from_file(args.task, config.dtype_str)]
    else:
        tasks = load_tasks(config, read_environment(os.environ))
    folder = run_directory(config, datetime.now())
    logger.info("run directory: %s", folder)
    try:
        with _stop_on_signals() as stop, open_session(config, tasks, folder, stop) as session:
            failed = _follow(session)
    except Interrupted as stopped:
        if config.save_path is not None:
            raise
        raise Interrupted(f"stopped; with --set save_path={folder} it goes on from here") from stopped
    print(closing_report(folder, config.total_steps, [task.key for task in tasks]))  # noqa: T201
    return ProblemError.exit_code if failed else 0


def _follow(session: Session) -> int:
    """Show progress until the run is over; returns the number of tasks that could not be run."""
    failed = 0
    total = len(session.tasks) * session.config.total_steps
    best: dict[str, float] = {}
    with logging_redirect_tqdm(), tqdm(total=total, unit="step", dynamic_ncols=True) as bar:
        for news in session.progress():
            if news.problem is not None:
                failed += 1
                logger.error("task %s: %s", news.task.key, news.problem)
            _show(bar, session, news, best)
    return failed


def _show(bar: tqdm[NoReturn], session: Session, news: Progress, best: dict[str, float]) -> None:
    record = news.record
    if record is None or record.node.plan.step == 0:
        return
    if record.verdict is not None and record.verdict.correct:
        best[news.task.key] = max(best.get(news.task.key, 0.0), record.verdict.speedup or 0.0)
    usage = session.client.total().usage
    fastest = max(best.values(), default=0.0)
    cost = "unknown" if usage.usd is None else f"${usage.usd:.2f}"
    shown = {"correct": f"{len(best)}/{len(session.tasks)}", "cost": cost}
    bar.set_postfix(shown | ({"best": f"{fastest:.2f}x"} if fastest else {}), refresh=False)
    bar.update()


@contextmanager
def _stop_on_signals() -> Iterator[threading.Event]:
    """An event that SIGINT and SIGTERM set; a second signal ends the process at once."""
    stop = threading.Event()

    def on_signal(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()
        logger.warning("stopping; finished steps are kept (again: stop at once)")

    before = {number: signal.signal(number, on_signal) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
