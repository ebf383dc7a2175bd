"""Problem files of the paths that a user names, by ``--task`` or the key ``task``."""

import logging
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from adaexplore.core.errors import TaskError
from adaexplore.core.files.inputs import input_text
from adaexplore.tasks.module_check import may_be_problem
from adaexplore.tasks.problem_folders import MAX_PROBLEM_BYTES, level_folders

logger = logging.getLogger(__name__)

Numbered = tuple[int, int]
"""Level and number of a problem."""


def problem_files(paths: Sequence[Path]) -> dict[Path, Numbered | None]:
    """Return the problem files of files and folders, each once; without a number for one named by its file.

    Of a folder with ``level1`` and so on, these hold the problems, as in KernelBench. Of another folder each
    ``.py`` file is one, sorted by name, except hidden workloads and files that define no problem.

    Raises:
        TaskError: a folder cannot be read or holds no problem.
    """
    found: dict[str, tuple[Path, Numbered | None]] = {}
    for given in paths:
        for path, number in _files(given):
            found.setdefault(os.path.realpath(path), (path, number))  # Path.resolve raises in a loop
    return dict(found.values())


def _files(given: Path) -> Iterator[tuple[Path, Numbered | None]]:
    if not given.is_dir():
        yield given, None
    elif levels := level_folders(given):
        for level, numbers in levels.items():
            yield from ((path, (level, number)) for number, path in numbers.items())
    else:
        yield from ((path, None) for path in _of_folder(given))


def _of_folder(folder: Path) -> list[Path]:
    files = sorted(path for path in folder.glob("*.py") if not path.name.endswith(".hidden.py"))
    chosen = [
        path
        for path in files
        if may_be_problem(input_text(path, "problem file", TaskError, limit=MAX_PROBLEM_BYTES))
    ]
    if not chosen:
        raise TaskError(f"no problems in the folder {folder}; a problem file defines Model and get_inputs")
    if len(chosen) < len(files):
        others = ", ".join(path.name for path in files if path not in chosen)
        logger.info("%s: not run, because it defines no problem: %s", folder, others)
    return chosen
