"""Folders of problem files: KernelBench's levels, and synthesised sets.

Functions raise TaskError if a folder or file cannot be used; the message says what to do.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import TaskError
from adaexplore.core.files.inputs import input_text
from adaexplore.core.task import Task
from adaexplore.core.wire import Direction, DtypeName
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import Environment
from adaexplore.settings.paths import locate
from adaexplore.tasks.inlining.inline import JudgePackages, inlined
from adaexplore.tasks.module_check import hidden_problem, module_problem
from adaexplore.tasks.test_list import Selection

KB_ROOT = "datasets/KernelBench"
SYN_ROOT = "datasets/KernelBench_syn/syn_v1"

MAX_PROBLEM_BYTES = 8 * 2**20
"""A judge takes no larger requests by default (``MAX_BODY_BYTES``)."""

_LEVEL_FOLDER = re.compile(r"level(\d+)")
_KB_FILE = re.compile(r"(\d+)_.*(?<!\.hidden)\.py")
_SYN_FILE = re.compile(r"(\d+)\.py")


@dataclass(frozen=True)
class ProblemFolders:
    """See :class:`~adaexplore.tasks.sources.TaskSource`."""

    root: Path
    levels: Mapping[int, Mapping[int, Path]]

    def selections(self, config: RunConfig) -> list[Selection]:
        origin = "level, problem_id"
        if config.level is None or config.problem_id is None:
            levels = self.levels if config.level is None else [config.level]
            return [Selection(level, None, origin) for level in levels]
        text = str(config.problem_id)
        if not (text.isascii() and text.isdecimal()):
            raise TaskError(f"problem_id: {config.test_source} problems have numbers, got '{text}'")
        return [Selection(config.level, (int(text),), origin)]

    def read(self, level: int, number: int, config: RunConfig) -> Task:
        return read_task(level, str(number), self.levels[level][number], config.dtype_str, config.direction)


def kernelbench(config: RunConfig, environment: Environment) -> ProblemFolders:
    """Open KernelBench's problem folder, or a clone of its repository, which holds it one level deeper."""
    if environment.kernelbench_root is not None:
        root, origin = environment.kernelbench_root, "KERNELBENCH_ROOT"
    else:
        root, origin = locate(config.problem_root or KB_ROOT), "problem_root"
    for folder in (root, root / "KernelBench"):
        if levels := level_folders(folder):
            return ProblemFolders(folder, levels)
    raise TaskError(
        f"no level folders in {root} ({origin}); run 'adaexplore datasets download kernelbench', "
        "or set KERNELBENCH_ROOT or problem_root to the folder that holds level1/"
    )


def level_folders(root: Path) -> dict[int, dict[int, Path]]:
    """Return the problem files by level and number in the folders ``level1`` and so on; empty without any."""
    levels = {
        int(match[1]): child
        for child in _children(root)
        if (match := _LEVEL_FOLDER.fullmatch(child.name)) and child.is_dir()
    }
    return {level: _problems(levels[level], _KB_FILE) for level in sorted(levels)}


def synthesised(config: RunConfig, environment: Environment) -> ProblemFolders:
    """Open a synthesised set: one folder of numbered files; its level is 1."""
    root = locate(config.problem_root or SYN_ROOT)
    problems = _problems(root, _SYN_FILE)
    if not problems:
        raise TaskError(f"no problems in {root}; set problem_root to the folder that holds 1.py, 2.py, ...")
    return ProblemFolders(root, {1: problems})


def read_task(
    level: int,
    problem_id: str,
    path: Path,
    dtype: DtypeName,
    direction: Direction,
    judge_packages: JudgePackages | None = None,
) -> Task:
    """Return the task of a problem file, with the workloads of ``<stem>.hidden.py`` beside it, if any.

    The source of packages is inlined; without ``judge_packages`` the text stays as it is.
    """
    try:
        reference = _read_module(path, "problem file", module_problem)
        hidden = path.with_suffix(".hidden.py")
        beside = _read_module(hidden, "hidden workloads", hidden_problem) if hidden.is_file() else None
        if judge_packages is not None:
            reference = inlined(path, reference, beside, direction, judge_packages)
    except TaskError as error:
        raise TaskError(f"task {level}_{problem_id}: {error}") from error
    return Task(level, problem_id, path.stem, reference, dtype, path, beside, direction)


def _read_module(path: Path, what: str, find_problem: Callable[[str], str | None]) -> str:
    source = input_text(path, what, TaskError, "check the path", MAX_PROBLEM_BYTES)
    problem = find_problem(source)
    if problem is not None:
        raise TaskError(f"{path}: {problem}")
    return source


def _problems(folder: Path, pattern: re.Pattern[str]) -> dict[int, Path]:
    found: dict[int, Path] = {}
    for path in _children(folder):
        match = pattern.fullmatch(path.name)
        if match is None or not path.is_file():
            continue
        other = found.setdefault(int(match[1]), path)
        if other is not path:
            raise TaskError(f"{path} and {other.name} have the same problem id; remove or rename one")
    return dict(sorted(found.items()))


def _children(folder: Path) -> list[Path]:
    """List ``folder`` sorted by name; empty if it does not exist."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise TaskError(f"cannot read folder {folder}: {error.strerror or error}") from error
