"""``adaexplore baseline``: time the references themselves and record the times for a GPU."""

import argparse
import logging
import os
import threading
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from adaexplore.cli.options import add_config, configuration
from adaexplore.cli.output import progress, show
from adaexplore.cli.stopping import stop_on_signals
from adaexplore.core.errors import ProblemError, UsageError
from adaexplore.core.files.atomic import locked, write_json
from adaexplore.core.files.inputs import regular_bytes
from adaexplore.core.task import Task
from adaexplore.core.text.json_text import parse_json
from adaexplore.judge_client.access import JudgeAccess, open_judge
from adaexplore.judge_client.baselines import FILE_NAMES, Timed, conditions, is_steady, time_reference
from adaexplore.run.batch import run_batch
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import Environment, read_environment
from adaexplore.tasks.problem_folders import KB_ROOT, SYN_ROOT
from adaexplore.tasks.sources import load_tasks
from adaexplore.tasks.test_list import Selection

logger = logging.getLogger(__name__)

COVERAGE = "coverage"
"""Key beside the levels: how many problems of each level have a time, and errors of the others."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config(parser)
    parser.add_argument(
        "--out", type=Path, default=Path("results/timing"), help="folder of records (default: results/timing)"
    )


def run(args: argparse.Namespace) -> int:
    """Time the references without a record, each as its own candidate; print the path of the record."""
    config = configuration(args, args.config).model_copy(update={"direction": "forward"})
    if config.baseline == "max-autotune":  # it chooses by time, which other jobs on the GPU would change
        config = config.model_copy(update={"num_processes": 1})
    if config.test_source not in ("KB", "SYN"):
        raise UsageError(f"baseline times references of KernelBench or SYN, not of {config.test_source}")
    if config.task is not None:
        raise UsageError(
            "baseline times the problems of a set; set task to null and name them by test_list_path"
        )
    environment = read_environment(os.environ)
    tasks = load_tasks(config, environment)
    levels = {task.level for task in tasks}
    whole = {level: load_tasks(config, environment, [Selection(level, None, "level")]) for level in levels}
    problems = {level: len(known) for level, known in whole.items()}
    with (
        stop_on_signals("recorded times") as stop,
        open_judge(config, stop=stop, force=True, samples=True, trials=1) as access,
    ):
        if access.identity.device != "cuda":
            raise UsageError(f"baselines need a GPU; the judge runs on {access.identity.hardware}")
        hardware = access.identity.hardware
        name = hardware if config.gpu_name == "auto" else config.gpu_name
        path = args.out / name / f"{FILE_NAMES[config.baseline]}{_set_name(config, environment)}.json"
        busy = f"another process writes to {path}; wait for it or name another folder with --out"
        with locked(path.with_suffix(".lock"), "name another folder with --out", busy):
            record = _read(path, hardware)
            wanted = {task: conditions(task, config, access.identity) for task in tasks}
            waiting = [task for task in tasks if not _is_recorded(task, record, wanted[task])]
            with progress(len(tasks), "problem", len(tasks) - len(waiting)) as bar:
                for timed in _timed(waiting, config, access, stop):
                    if timed.entry is None:
                        logger.error("%s: %s", timed.task.path, timed.reason)
                    _note(record, timed.task, timed.entry, timed.reason, problems[timed.task.level])
                    write_json(path, record)
                    bar.update()
    show(f"Baselines: {path}")
    for level in sorted(problems):
        known = record.get(COVERAGE, {}).get(f"level{level}", {})
        if not known.get("complete"):
            share = f"{known.get('timed', 0)} of {problems[level]}"
            show(f"Level {level} is partial: {share} problems have a time.")
    complete = all(_is_recorded(task, record, wanted[task]) for task in tasks)
    return 0 if complete else ProblemError.exit_code


def _timed(
    tasks: Sequence[Task], config: RunConfig, access: JudgeAccess, stop: threading.Event
) -> Iterator[Timed]:
    """Time the references, and yield each result as it arrives.

    Raises:
        Interrupted: ``stop`` was set.
        JudgeError: the judge failed, or sent no timed calls.
    """

    def timed(task: Task) -> Iterator[Timed]:
        yield time_reference(task, config, access)

    for news in run_batch([(task, timed(task)) for task in tasks], config.num_processes, stop):
        if news.problem is not None:
            yield Timed(news.task, None, str(news.problem).removeprefix(f"{news.task.path}: "))
        elif news.result is not None:
            yield news.result


def _set_name(config: RunConfig, environment: Environment) -> str:
    """Return a suffix for the times of sets other than KernelBench, which share its problem numbers."""
    if config.test_source == "KB" and environment.kernelbench_root is not None:
        return ""
    default = KB_ROOT if config.test_source == "KB" else SYN_ROOT
    name = Path(config.problem_root or default).name
    return "" if name == Path(KB_ROOT).name else f"-{name}"


def _is_recorded(task: Task, record: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    entry = record.get(f"level{task.level}", {}).get(f"{task.name}.py", {})
    return all(entry.get(key) == value for key, value in wanted.items()) and is_steady(entry)


def _note(
    record: dict[str, Any], task: Task, entry: dict[str, Any] | None, reason: str, problems: int
) -> None:
    level, name = f"level{task.level}", f"{task.name}.py"
    times = record.setdefault(level, {})
    coverage = record.setdefault(COVERAGE, {}).setdefault(level, {})
    failed = coverage.setdefault("failed", {})
    if entry is None:
        failed[name] = reason
        times.pop(name, None)
    else:
        times[name] = entry
        failed.pop(name, None)
    coverage |= {"timed": len(times), "problems": problems, "complete": len(times) == problems}


def _read(path: Path, hardware: str) -> dict[str, Any]:
    """Read the existing record; a stopped run continues from it.

    Raises:
        UsageError: it cannot be used, or has times of other hardware.
    """
    if not path.exists():
        return {}
    try:
        record: Any = parse_json(regular_bytes(path))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path} cannot be read ({error}); move it away") from error
    levels = record.values() if isinstance(record, dict) else [None]
    if not all(isinstance(part, dict) and all(isinstance(x, dict) for x in part.values()) for part in levels):
        raise UsageError(f"{path} does not hold levels of problems; move it away")
    entries = [entry for level, part in record.items() if level != COVERAGE for entry in part.values()]
    others = {str(entry.get("hardware", hardware)) for entry in entries} - {hardware}
    if others:
        raise UsageError(
            f"{path} has times of {min(others)}, and the judge's GPU is {hardware}; "
            "set gpu_name to another name, or name another folder with --out"
        )
    return dict(record)
