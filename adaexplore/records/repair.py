"""Make a damaged run usable again: what cannot be read is renamed, so that it counts as not there."""

from __future__ import annotations

import json
import os
from pathlib import Path

from adaexplore.core.errors import StorageError
from adaexplore.records.run_records import RunRecords

_SUFFIX = ".damaged"


def repair(run: RunRecords) -> list[Path]:
    """Set aside JSON files that hold no JSON, then the logs of steps that cannot be read without them.

    A step whose log is set aside is done again when the run goes on, and so are those after it. The caller
    holds the run's lock.

    Returns:
        The files that were renamed, by their names before.

    Raises:
        StorageError: a file cannot be renamed.
    """
    renamed = []
    for path in sorted([*run.folder.glob("*.json"), *run.folder.glob("*/*.json")]):
        try:
            json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            renamed.append(_set_aside(path))
    for key in run.tasks():
        records = run.task(key)
        logs = [log for log in records.unreadable_logs() if log.is_file()]
        if logs or any(path.parent == records.folder for path in renamed):
            finished = sorted(records.folder.glob("global_best_metrics_[0-9]*.json"))
            renamed += [_set_aside(path) for path in (*logs, *finished)]
    return renamed


def _set_aside(path: Path) -> Path:
    """Rename ``path``; a file that was set aside before under that name is kept."""
    number, target = 1, path.with_name(path.name + _SUFFIX)
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}{_SUFFIX}-{number}")
    try:
        os.rename(path, target)
    except OSError as error:
        raise StorageError(f"cannot rename {path}: {error.strerror or error}") from error
    return path
