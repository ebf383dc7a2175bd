"""Starting kernels of a search: ``seed_kernel``."""

from collections.abc import Mapping, Sequence
from pathlib import Path

from adaexplore.core.errors import ConfigError
from adaexplore.core.files.inputs import input_text
from adaexplore.core.task import Task
from adaexplore.settings.config import RunConfig
from adaexplore.settings.paths import locate


def load_seeds(config: RunConfig, tasks: Sequence[Task]) -> Mapping[str, tuple[str, ...]]:
    """Load the kernels of ``seed_kernel`` by task, sorted by name.

    A file holds for every task. In a folder, a task has the file ``<key>.py`` and the files of the folder
    ``<key>/``; a single task without either has all ``*.py`` of the folder.

    Raises:
        ConfigError: no task has a kernel, a kernel is empty, or there are too few steps for them.
    """
    if config.seed_kernel is None:
        return {}
    given = locate(config.seed_kernel)
    if given.is_file():
        paths = {task.key: [given] for task in tasks}
    elif given.is_dir():
        paths = {task.key: _named(given, task.key) for task in tasks}
        if len(tasks) == 1 and not paths[tasks[0].key]:
            paths = {tasks[0].key: sorted(given.glob("*.py"))}
    else:
        raise ConfigError(f"seed_kernel: there is no file and no folder {given}")
    if not any(paths.values()):
        raise ConfigError(
            f"seed_kernel: {given} holds no kernel for any task; name files <level>_<problem_id>.py, "
            f"such as {tasks[0].key}.py"
        )
    most = max(len(listed) for listed in paths.values())
    if most > config.total_steps:
        raise ConfigError(
            f"seed_kernel: {given} has {most} kernels for one task and each is a step; raise total_steps "
            f"above {config.total_steps}"
        )
    return {key: tuple(_read(path) for path in listed) for key, listed in paths.items()}


def _named(folder: Path, key: str) -> list[Path]:
    own = folder / f"{key}.py"
    return [*([own] if own.is_file() else []), *sorted((folder / key).glob("*.py"))]


def _read(path: Path) -> str:
    source = input_text(path, "seed_kernel", ConfigError)
    if not source.strip():
        raise ConfigError(f"seed_kernel {path} is empty")
    return source
