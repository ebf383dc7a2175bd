"""Make a damaged run usable again: rename unreadable files, so that they count as missing."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from adaexplore.core.errors import RecordError, StorageError
from adaexplore.records import layout, metrics
from adaexplore.records.run_records import RunRecords

_SUFFIX = ".damaged"


def repair(run: RunRecords) -> list[Path]:
    """Set aside damaged JSON files, then the logs of steps that cannot be read without them.

    When the run continues, it repeats a step whose log was set aside, and all later steps. The caller holds
    the run's lock.

    Returns:
        The old names of the renamed files.

    Raises:
        StorageError: a file cannot be renamed.
    """
    renamed = []
    for path in sorted([*run.folder.glob("*.json"), *run.folder.glob("*/*.json")]):
        try:
            json.loads(path.read_bytes())
        except (OSError, ValueError, RecursionError):
            renamed.append(_set_aside(path))
    for path, read in _readers(run):
        try:
            read()
        except RecordError:
            renamed.append(_set_aside(path))
    for key in run.tasks():
        records = run.task(key)
        logs = [log for log in records.unreadable_logs() if log.is_file()]
        if logs or any(path.parent == records.folder for path in renamed):
            finished = sorted(records.folder.glob("global_best_metrics_[0-9]*.json"))
            renamed += [_set_aside(path) for path in (*logs, *finished)]
    return renamed


def _readers(run: RunRecords) -> Iterator[tuple[Path, Callable[[], object]]]:
    """Yield files whose JSON may be invalid, each with the method that reads it."""
    yield run.folder / layout.ENVIRONMENT, run.planned
    yield run.folder / layout.JUDGE_ENVIRONMENT, run.judge_environment
    for records in map(run.task, run.tasks()):
        for path in sorted(records.folder.glob("*_metrics*.json")):
            yield path, partial(metrics.read_verdict, path)
        yield records.folder / layout.REFERENCE_FACTS, records.reference_facts
        yield records.folder / layout.RULES, records.rules
        yield records.folder / layout.PLANS, records.plans
        yield records.folder / layout.FINDINGS, records.findings


def _set_aside(path: Path) -> Path:
    """Rename ``path``; keep a file that was set aside under that name before."""
    number, target = 1, path.with_name(path.name + _SUFFIX)
    while target.exists():
        number += 1
        target = path.with_name(f"{path.name}{_SUFFIX}-{number}")
    try:
        os.rename(path, target)
    except OSError as error:
        raise StorageError(f"cannot rename {path}: {error.strerror or error}") from error
    return path
