"""Resolve the paths in a configuration."""

import re
from datetime import datetime
from itertools import chain, count
from os.path import lexists
from pathlib import Path

from adaexplore.core.errors import ConfigError
from adaexplore.settings.config import RunConfig

_NAME_CHARS = 60
REPOSITORY_ROOT = Path(__file__).resolve().parents[2]
_BUNDLED = Path(__file__).resolve().parents[1] / "bundled"
"""Folder of the repository's default files in an installed wheel."""


def locate(path: str | Path) -> Path:
    """Find an input file or folder: as given, else in the repository or among the files of the wheel.

    A path that is in neither place is returned as given, so that messages show it.

    Raises:
        ConfigError: the path starts with an unknown home directory.
    """
    given = expanded(path)
    if given.is_absolute() or given.exists():
        return given
    ours = (_BUNDLED if _BUNDLED.exists() else REPOSITORY_ROOT) / given
    return ours if ours.exists() else given


def datasets_folder() -> Path:
    """Return the folder of data sets: ``datasets`` in a checkout, else in the current directory."""
    return Path("datasets") if _BUNDLED.exists() else locate("datasets")


def expanded(path: str | Path) -> Path:
    """Return ``path`` with a leading ``~`` replaced.

    Raises:
        ConfigError: the path starts with an unknown home directory.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{path} starts with an unknown home directory; write the path out") from error


def run_directory(config: RunConfig, now: datetime) -> Path:
    """Return the run's directory: ``save_path``, else a unique name under ``outputs/`` with its tasks.

    Raises:
        ConfigError: as :func:`expanded`.
    """
    if config.save_path is not None:
        return expanded(config.save_path)
    memory = config.general_memory_path  # such as general_memory_v1_200.txt
    parts = [
        config.agent_type,
        "no-memory" if memory is None else Path(memory).stem.removeprefix("general_memory_"),
        *([] if config.task is not None else [config.test_source]),
        _task_name(config),
        str(config.total_steps),
        now.strftime("%Y%m%d-%H%M%S"),
    ]
    if config.suffix is not None:
        parts.append(config.suffix)
    name = "_".join(parts)
    later = (f"{name}_{number}" for number in count(2))  # a second run of that second, or a clock set back
    return next(Path("outputs", each) for each in chain([name], later) if not lexists(f"outputs/{each}"))


def _task_name(config: RunConfig) -> str:
    """Name the tasks in a run directory's name: the file, folder or list, or the problem."""
    if config.task is not None:
        more = len(config.task) - 1
        name = Path(config.task[0]).absolute().stem + (f"-and-{more}-more" if more else "")
    elif config.test_list_path is not None:
        name = Path(config.test_list_path).stem
    elif config.level is None and config.problem_root is not None:
        name = Path(config.problem_root).absolute().name
    else:
        named = (f"level{config.level}" if config.level is not None else "all", config.problem_id)
        name = "-".join(str(part) for part in named if part is not None)
    return re.sub(r"[^A-Za-z0-9_-]", "-", name)[:_NAME_CHARS]
