"""Load the tasks of a run from its configuration."""

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Protocol

from adaexplore.core.errors import TaskError
from adaexplore.core.task import Task
from adaexplore.core.wire import Direction, DtypeName
from adaexplore.settings.config import RunConfig, TestSource
from adaexplore.settings.environment import Environment
from adaexplore.settings.paths import locate
from adaexplore.tasks.benchmarks import benchmark_tasks
from adaexplore.tasks.inlining.inline import JudgePackages
from adaexplore.tasks.named_paths import problem_files
from adaexplore.tasks.problem_folders import kernelbench, read_task, synthesised
from adaexplore.tasks.test_list import Selection, read_test_list


class TaskSource(Protocol):
    """An open set of problems: its folder, and the file of each problem by level and number, in order.

    Methods raise TaskError, which names the task, the line and what to do.
    """

    @property
    def root(self) -> Path:
        """The folder of the problems."""

    @property
    def levels(self) -> Mapping[int, Mapping[int, Path]]:
        """The problem files by level and number."""

    def selections(self, config: RunConfig) -> list[Selection]:
        """Return the tasks that ``config`` names, for a run without a test list."""

    def read(self, level: int, number: int, config: RunConfig) -> Task:
        """Return one of the tasks in ``levels``."""


SOURCES: Mapping[TestSource, Callable[[RunConfig, Environment], TaskSource]] = {
    "KB": kernelbench,
    "SYN": synthesised,
    "FIT": benchmark_tasks,
    "MLSYS": benchmark_tasks,
    "TBG": benchmark_tasks,
    "TBT": benchmark_tasks,
}
"""Functions that open each ``test_source``; TaskError if its folder is missing or holds no problem."""


def load_tasks(
    config: RunConfig,
    environment: Environment,
    selections: Sequence[Selection] | None = None,
    judge_packages: JudgePackages = tuple,
) -> list[Task]:
    """Load the tasks that ``config`` selects, in the order of its test list, each once.

    ``selections`` replace the configuration's test list, and its key ``task``.

    Raises:
        TaskError: a folder, a list or a problem is missing or cannot be used.
    """
    if selections is None and config.task is not None:
        return named_tasks(config.task, config.dtype_str, config.direction, judge_packages)
    source = SOURCES[config.test_source](config, environment)
    if selections is None:
        listed = config.test_list_path
        selections = source.selections(config) if listed is None else read_test_list(locate(listed))
    chosen: dict[tuple[int, int], None] = {}
    problems = []
    for selection in selections:
        if selection.level not in source.levels:
            levels = ", ".join(map(str, source.levels))
            no_level = f"no level {selection.level} in {source.root}; it has level {levels}"
            problems.append(f"{selection.origin}: {no_level}")
            continue
        present = source.levels[selection.level]
        ids = tuple(present) if selection.problem_ids is None else selection.problem_ids
        missing = [number for number in ids if number not in present]
        if missing:
            where, there = f"level {selection.level} of {source.root}", _ranges(list(present))
            problems.append(f"{selection.origin}: no problem {_ranges(missing)} in {where}; it has {there}")
        chosen |= {(selection.level, number): None for number in ids if number in present}
    tasks = []
    for level, number in () if problems else chosen:
        try:
            tasks.append(source.read(level, number, config))
        except TaskError as error:
            problems.append(str(error))
    if problems:
        raise TaskError("\n".join(problems))
    if not tasks:
        raise TaskError(f"{source.root}: the selected levels hold no problems; check test_list_path")
    return tasks


def named_tasks(
    paths: Sequence[str], dtype: DtypeName, direction: Direction, judge_packages: JudgePackages
) -> list[Task]:
    """Load the tasks of problem files and folders, in the given order, each file once.

    Source of packages is inlined, see :func:`task_from_file`.

    Raises:
        TaskError: a file or folder cannot be used, or two files give their tasks the same name.
    """
    tasks: dict[str, Task] = {}
    problems: list[str] = []
    for path, number in problem_files([locate(given) for given in paths]).items():
        try:
            if number is None:
                task = task_from_file(path, dtype, direction, judge_packages)
            else:
                task = read_task(number[0], str(number[1]), path, dtype, direction, judge_packages)
        except TaskError as error:
            problems.append(str(error))
            continue
        other = tasks.setdefault(task.key, task)
        if other is not task:
            problems.append(f"task {task.key}: {other.path} and {path} have the same name; rename one")
    if problems:
        raise TaskError("\n".join(problems))
    return list(tasks.values())


def task_from_file(
    path: Path,
    dtype: DtypeName,
    direction: Direction = "forward",
    judge_packages: JudgePackages = tuple,
) -> Task:
    """Load the task of a single problem file: level 0, named after the file.

    The source of what it imports from packages is inlined; ``judge_packages`` returns those that the judge
    has, which may stay imports if they are too large.

    Raises:
        TaskError: the file cannot be read or is not a problem module.
    """
    problem_id = re.sub(r"[^A-Za-z0-9_-]", "_", path.stem)
    return read_task(0, problem_id, path, dtype, direction, judge_packages)


def _ranges(ids: list[int]) -> str:
    """Format ``[1, 2, 3, 7]`` as ``1-3, 7``; shorten a long list."""
    if not ids:
        return "none"
    runs: list[list[int]] = []
    for number in sorted(ids):
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    texts = [str(first) if first == last else f"{first}-{last}" for first, last in runs]
    return ", ".join(texts if len(texts) <= 12 else [*texts[:11], "..."])
