"""Make a damaged run usable again: rename unreadable files, so that they count as missing."""

import json
import os
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from adaexplore.core.errors import RecordError, StorageError
from adaexplore.records import layout, metrics
from adaexplore.records.run_records import RunRecords
from adaexplore.records.task_records import TaskRecords

_SUFFIX = ".damaged"


def repair(run: RunRecords) -> list[Path]:
    """Set aside damaged files, then the logs of steps that cannot be read without them and of later steps.

    When the run continues, it repeats the steps whose logs were set aside. The caller holds
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
        renamed += [_set_aside(log) for log in records.unreadable_logs() if log.is_file()]
        damaged = any(path.parent == records.folder for path in renamed)
        if damaged or records.lost_log() is not None:
            renamed += [_set_aside(path) for path in _outdated(records, damaged)]
    return renamed


def _outdated(records: TaskRecords, damaged: bool) -> list[Path]:
    """Return the logs of steps after a missing one, and the records of the best that need more steps.

    If a file was ``damaged``, all records of the best are written again.
    """
    after = records.after_gap()
    logs = [log for log in (records.files(step).log for step in after) if log.is_file()]
    kept = sum(step > 0 for step in records.complete() if step not in after)
    bests = layout.best_steps(path.name for path in records.folder.iterdir())
    return logs + [records.best_metrics_path(steps) for steps in bests if damaged or steps > kept]


def _readers(run: RunRecords) -> Iterator[tuple[Path, Callable[[], object]]]:
    """Yield files that may be damaged in another way, each with the method that reads it."""
    yield run.folder / layout.ENVIRONMENT, run.planned
    yield run.folder / layout.CONFIG, run.settings
    yield run.folder / layout.JUDGE_ENVIRONMENT, run.judge_environment
    for records in map(run.task, run.tasks()):
        for path in sorted(records.folder.glob("*_metrics*.json")):
            yield path, partial(metrics.read_verdict, path)
        if records.has_reference():
            yield records.reference_path, partial(_read_problem, records)
        yield records.folder / layout.HIDDEN_WORKLOADS, records.hidden_workloads
        yield records.folder / layout.FULL_REFERENCE, records.full_reference
        yield records.folder / layout.REFERENCE_FACTS, records.reference_facts
        yield records.folder / layout.RULES, records.rules
        yield records.folder / layout.PLANS, records.plans
        yield records.folder / layout.FINDINGS, records.findings


def _read_problem(records: TaskRecords) -> None:
    """Read the reference and its workloads; without a reference, a run that continues writes both again."""
    records.reference()
    records.hidden_workloads()
    records.full_reference()


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
