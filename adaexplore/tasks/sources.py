"""From a configuration to the tasks of a run."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path

from adaexplore.core.errors import TaskError
from adaexplore.core.inputs import input_text
from adaexplore.core.task import Task
from adaexplore.core.wire import DtypeName
from adaexplore.settings.config import RunConfig
from adaexplore.settings.environment import Environment
from adaexplore.settings.paths import locate
from adaexplore.tasks.module_check import module_problem
from adaexplore.tasks.test_list import Selection, read_test_list

KB_ROOT = "datasets/KernelBench"
SYN_ROOT = "datasets/KernelBench_syn/syn_v1"

_LEVEL_FOLDER = re.compile(r"level(\d+)")
_KB_FILE = re.compile(r"(\d+)_.*\.py")
_SYN_FILE = re.compile(r"(\d+)\.py")

Catalogue = Mapping[int, Mapping[int, Path]]
"""The problem files that exist, by level and problem id, in numeric order."""


def load_tasks(config: RunConfig, environment: Environment) -> list[Task]:
    """The tasks that ``config`` selects, in the order of its test list, each once.

    Raises:
        TaskError: a folder, a list or a problem is missing or cannot be used.
    """
    if config.test_source == "KB":
        root, catalogue = _kernelbench(config, environment)
    else:
        root, catalogue = _synthesised(config)
    chosen: dict[tuple[int, int], Path] = {}
    missing: dict[int, list[int]] = {}
    for selection in _selections(config):
        present = catalogue.get(selection.level, {})
        ids = tuple(present) if selection.problem_ids is None else selection.problem_ids
        if selection.level not in catalogue:
            levels = ", ".join(map(str, catalogue))
            raise TaskError(f"no level {selection.level} in {root}; it has level {levels}")
        for problem_id in ids:
            if problem_id in present:
                chosen[selection.level, problem_id] = present[problem_id]
            else:
                missing.setdefault(selection.level, []).append(problem_id)
    if missing:
        parts = [
            f"no problem {_ranges(ids)} in level {level} of {root}; it has {_ranges(list(catalogue[level]))}"
            for level, ids in missing.items()
        ]
        raise TaskError("; ".join(parts))
    return _read_all(chosen, config.dtype_str)


def task_from_file(path: Path, dtype: DtypeName) -> Task:
    """The task in one problem file anywhere: level 0, named after the file.

    Raises:
        TaskError: the file cannot be read or is not a problem module.
    """
    problem_id = re.sub(r"[^A-Za-z0-9_-]", "_", path.stem)
    reference = _read_module(path)
    return Task(0, problem_id, path.stem, reference, dtype, path)


def _selections(config: RunConfig) -> list[Selection]:
    if config.test_list_path is not None:
        return read_test_list(locate(config.test_list_path))
    text = str(config.problem_id)
    if not (text.isascii() and text.isdecimal()):
        raise TaskError(f"problem_id: {config.test_source} problems have numbers, got '{text}'")
    return [Selection(config.level, (int(text),))]


def _kernelbench(config: RunConfig, environment: Environment) -> tuple[Path, Catalogue]:
    """KernelBench's problem folder, or a clone of its repository, which holds it one level deeper."""
    if environment.kernelbench_root is not None:
        root, origin = environment.kernelbench_root, "KERNELBENCH_ROOT"
    else:
        root, origin = locate(config.problem_root or KB_ROOT), "problem_root"
    for folder in (root, root / "KernelBench"):
        levels = {
            int(match[1]): child
            for child in _children(folder)
            if (match := _LEVEL_FOLDER.fullmatch(child.name)) and child.is_dir()
        }
        if levels:
            return folder, {level: _problems(levels[level], _KB_FILE) for level in sorted(levels)}
    raise TaskError(
        f"no level folders in {root} ({origin}); set KERNELBENCH_ROOT or problem_root to the folder "
        "that holds level1/"
    )


def _synthesised(config: RunConfig) -> tuple[Path, Catalogue]:
    """A synthesised set is one folder of numbered files; it counts as level 1."""
    root = locate(config.problem_root or SYN_ROOT)
    problems = _problems(root, _SYN_FILE)
    if not problems:
        raise TaskError(f"no problems in {root}; set problem_root to the folder that holds 1.py, 2.py, ...")
    return root, {1: problems}


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
    """What is in ``folder``, in the order of names; nothing where it does not exist."""
    try:
        return sorted(folder.iterdir())
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise TaskError(f"cannot read folder {folder}: {error.strerror or error}") from error


def _read_all(chosen: Mapping[tuple[int, int], Path], dtype: DtypeName) -> list[Task]:
    tasks, problems = [], []
    for (level, problem_id), path in chosen.items():
        try:
            tasks.append(Task(level, str(problem_id), path.stem, _read_module(path), dtype, path))
        except TaskError as error:
            problems.append(str(error))
    if problems:
        raise TaskError("\n".join(problems))
    if not tasks:
        raise TaskError("the selected levels hold no problems")
    return tasks


def _read_module(path: Path) -> str:
    source = input_text(path, "problem file", TaskError)
    problem = module_problem(source)
    if problem is not None:
        raise TaskError(f"{path}: {problem}")
    return source


def _ranges(ids: list[int]) -> str:
    """``1-3, 7`` of ``[1, 2, 3, 7]``; shortened where it gets long."""
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
