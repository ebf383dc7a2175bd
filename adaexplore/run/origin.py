"""First steps of a run that are copied from another run, by resuming or forking it."""

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
from adaexplore.settings.paths import locate
from adaexplore.settings.yaml_text import dump_mapping

_LASTING = ("agent_type", "dummy", "tier", "baseline", "direction")
"""Keys that may not change once a run directory holds steps."""


@dataclass(frozen=True)
class Fork:
    """A recorded run to start from: the first ``at`` steps of each of its tasks."""

    run: Path
    at: int


def refuse_to_mix(records: RunRecords, config: RunConfig, otherwise: str) -> None:
    """Refuse to mix steps of different agents or with different kinds of verdicts in a run.

    Raises:
        ConfigError: ``records`` holds such steps; ``otherwise`` says what to do instead.
    """
    begun = records.settings()
    if begun:
        begun.setdefault("direction", "forward")  # a run of an earlier version
    for key in _LASTING:
        if key in begun and begun[key] != getattr(config, key) and records.tasks():
            shown = dump_mapping({key: begun[key]}).strip()
            preset = begun.get("preset", config.preset)
            or_else = "" if preset == config.preset else f", or add --preset {preset}"
            raise ConfigError(f"{records.folder} was started with {shown}; {otherwise}{or_else}")


def refuse_other_origin(records: RunRecords, fork: Fork | None, replayed: RunRecords | None) -> None:
    """Refuse to fork or replay into a directory that holds another run; continuing its own run is allowed.

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
    """The steps to copy into a task: the first ``steps`` of ``theirs``."""

    ours: TaskRecords
    theirs: TaskRecords
    steps: int

    def take(self) -> None:
        """Copy the steps and record which run made them; do nothing if the run has as many.

        Of a task without a step, the facts about its reference are copied, which may be used again.

        Raises:
            RecordError: a source file cannot be read.
            StorageError: a target file cannot be written.
        """
        if self.ours.step_count() >= self.steps:
            facts = None if self.steps else self.theirs.reference_facts()
            if facts is not None and self.ours.reference_facts() is None:
                self.ours.write_reference_facts(facts)
            return
        makers = RunRecords(self.theirs.folder.parent).makers(self.theirs.folder.name, self.steps)
        RunRecords(self.ours.folder.parent).write_makers(self.ours.folder.name, makers)
        self.ours.copy_from(self.theirs, self.steps)


def to_take(
    records: RunRecords,
    config: RunConfig,
    tasks: Sequence[Task],
    fork: Fork | None,
    replayed: RunRecords | None = None,
) -> list[Taking]:
    """List the steps to copy: of ``resume_from``, of a fork, and those that a replayed run copied.

    Raises:
        RecordError: a named run holds none of the tasks, or one of its files is damaged.
        UsageError: no task of a forked run has that many steps.
        ConfigError: its steps are of another kind.
    """
    taken = []
    if config.resume_from is not None:
        taken += _first_steps(records, config, tasks, locate(config.resume_from), "resume_from")
    if fork is not None:
        taken += _first_steps(records, config, tasks, fork.run, "--fork", fork.at)
    if replayed is not None:
        counts = {task.key: replayed.taken_over(task.key) for task in tasks}
        for key, count in counts.items():
            if count:
                theirs = replayed.task(key)
                taken.append(Taking(records.task(key, theirs.agent_type), theirs, count))
    return taken


def _first_steps(
    records: RunRecords,
    config: RunConfig,
    tasks: Sequence[Task],
    source: Path,
    wanted_by: str,
    within: int | None = None,
) -> list[Taking]:
    """Return the first ``within`` steps of each task; ``source`` may be the folder of the only task.

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
            refuse_to_mix(run, config, f"{wanted_by} needs a run of the same kind")
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


def origin(records: RunRecords, fork: Fork | None, replayed: RunRecords | None) -> dict[str, Any]:
    """Return the run's id and the origin of its steps, for ``environment.json``; recorded values stay."""
    known = records.environment()
    now = _origin(fork, replayed)
    now["id"] = (
        records.name() if known or records.tasks() else f"{records.folder.name}-{secrets.token_hex(4)}"
    )
    told = {key: now[key] or known.get(key) for key in now}
    return {key: run for key, run in told.items() if run is not None}
