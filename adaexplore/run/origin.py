"""Steps that a run begins with and did not make: taken over from another run, or a fork of it."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from adaexplore.core.errors import ConfigError, RecordError, UsageError
from adaexplore.core.task import Task
from adaexplore.records.run_records import RunRecords
from adaexplore.records.task_records import TaskRecords
from adaexplore.settings.config import RunConfig
from adaexplore.settings.load import resolved_yaml

_LASTING = ("agent_type: ", "dummy: ", "tier: ", "baseline: ")
"""Keys that a run directory is bound to once it holds steps, as they begin their lines."""


@dataclass(frozen=True)
class Fork:
    """A recorded run to begin with: the first ``at`` steps of each of its tasks."""

    run: Path
    at: int


def refuse_to_mix(records: RunRecords, config: RunConfig, otherwise: str) -> None:
    """Keep steps of another agent, or with verdicts of another kind, out of a run.

    Raises:
        ConfigError: ``records`` holds such steps; ``otherwise`` is what to do instead.
    """
    now = resolved_yaml(config).splitlines()
    for line in (records.config() or "").splitlines():
        if line.startswith(_LASTING) and line not in now and records.tasks():
            raise ConfigError(f"{records.folder} was begun with {line}; {otherwise}")


def refuse_other_origin(records: RunRecords, fork: Fork | None, replayed: RunRecords | None) -> None:
    """Keep a fork or a replay out of a directory that holds another run; its own it goes on with.

    Raises:
        UsageError: ``records`` holds steps that do not come from there.
    """
    wanted = {key: told for key, told in _origin(fork, replayed).items() if told is not None}
    known = records.environment()
    if known and records.tasks() and any(known.get(key) != told for key, told in wanted.items()):
        raise UsageError(f"{records.folder} holds another run already; choose another directory")


def _origin(fork: Fork | None, replayed: RunRecords | None) -> dict[str, Any]:
    return {
        "forked_from": None if fork is None else {"run": str(fork.run.resolve()), "at": fork.at},
        "replay_of": None if replayed is None else str(replayed.folder.resolve()),
    }


@dataclass(frozen=True)
class Taking:
    """Steps of a task that a run begins with: the first ``steps`` of ``theirs``."""

    ours: TaskRecords
    theirs: TaskRecords
    steps: int

    def take(self) -> None:
        """Copy them, and keep who made them; nothing where the run has as many.

        Raises:
            RecordError: a file there cannot be read.
            StorageError: a file here cannot be written.
        """
        if self.ours.step_count() >= self.steps:
            return
        makers = RunRecords(self.theirs.folder.parent).makers(self.theirs.folder.name, self.steps)
        RunRecords(self.ours.folder.parent).write_makers(self.ours.folder.name, makers)
        self.ours.copy_from(self.theirs, self.steps)


def to_take(
    records: RunRecords,
    config: RunConfig,
    tasks: Sequence[Task],
    source: Path,
    wanted_by: str,
    within: int | None = None,
) -> list[Taking]:
    """The first ``within`` recorded steps of each task.

    Args:
        records: the run that takes them.
        config: its settings.
        tasks: its tasks.
        source: a run, or one task's folder where one task runs.
        wanted_by: who asks for it, for messages.
        within: how many steps; by default all.

    Raises:
        RecordError: ``source`` holds none of the tasks.
        UsageError: no task of it has that many steps.
        ConfigError: its steps are of another kind.
    """
    if not source.is_dir():
        raise RecordError(f"{wanted_by}: there is no folder {source}")
    if source.resolve() == records.folder.resolve():
        return []
    found: list[Taking] = []
    for task in tasks:
        folder = source / task.key
        if not folder.is_dir() and len(tasks) == 1:
            folder = source
        if folder.is_dir():
            run = RunRecords(folder.parent)
            refuse_to_mix(run, config, f"{wanted_by} takes a run of the same kind")
            theirs = run.task(folder.name, config.agent_type)
            steps = theirs.step_count()
            if folder != source or theirs.has_reference() or steps:
                found.append(Taking(records.task(task.key, config.agent_type), theirs, steps))
    if not found:
        raise RecordError(f"{wanted_by}: {source} holds none of this run's tasks")
    most = max(taking.steps for taking in found)
    if within is not None and most < within:
        raise UsageError(f"{wanted_by}: {source} has at most {most} steps a task, not {within}")
    if within is not None:
        found = [replace(taking, steps=min(taking.steps, within)) for taking in found]
    return found


def taken_over(records: RunRecords, tasks: Sequence[Task], replayed: RunRecords) -> list[Taking]:
    """The steps that a recorded run took over itself, under whatever settings: its replay does too.

    Raises:
        RecordError: a file there is damaged.
    """
    counts = {task.key: replayed.taken_over(task.key) for task in tasks}
    theirs = {key: replayed.task(key) for key, count in counts.items() if count}
    return [Taking(records.task(key, task.agent_type), task, counts[key]) for key, task in theirs.items()]


def origin(records: RunRecords, fork: Fork | None, replayed: RunRecords | None) -> dict[str, Any]:
    """What the run is and where its steps come from, for ``environment.json``; what it was it stays."""
    known = records.environment()
    now = _origin(fork, replayed)
    now["id"] = (
        records.name() if known or records.tasks() else f"{records.folder.name}-{secrets.token_hex(4)}"
    )
    told = {key: now[key] or known.get(key) for key in now}
    return {key: run for key, run in told.items() if run is not None}
