"""Where the paths in a configuration lead."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path

from adaexplore.core.errors import ConfigError
from adaexplore.settings.config import RunConfig

REPOSITORY_ROOT = Path(__file__).resolve().parents[2]


def locate(path: str | Path) -> Path:
    """Find an input file or folder: as given, else below the folder that holds this package.

    Where it is in neither place the path is returned as given, so that a message names what was written.

    Raises:
        ConfigError: it begins with the home of somebody who has none.
    """
    given = expanded(path)
    if given.is_absolute() or given.exists():
        return given
    beside_package = REPOSITORY_ROOT / given
    return beside_package if beside_package.exists() else given


def expanded(path: str | Path) -> Path:
    """``path`` with a ``~`` at its beginning replaced.

    Raises:
        ConfigError: it begins with the home of somebody who has none.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{path} begins with a home that is not known; write the path out") from error


def run_directory(config: RunConfig, now: datetime) -> Path:
    """The run's directory: ``save_path``, else a name under ``outputs/`` that tells runs apart.

    Args:
        config: the run's configuration.
        now: the time that goes into the name.

    Raises:
        ConfigError: as :func:`expanded`.
    """
    if config.save_path is not None:
        return expanded(config.save_path)
    parts = [
        config.agent_type,
        memory_version(config.general_memory_path),
        config.test_source,
        str(config.total_steps),
        now.strftime("%Y%m%d-%H%M%S"),
    ]
    if config.suffix is not None:
        parts.append(config.suffix)
    return Path("outputs") / "_".join(parts)


def memory_version(general_memory_path: str | None) -> str:
    """The short name of a memory file: ``v1_200`` of ``general_memory_v1_200.txt``."""
    if general_memory_path is None:
        return "no-memory"
    return Path(general_memory_path).stem.removeprefix("general_memory_")
