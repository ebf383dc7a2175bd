"""One invocation of ``adaexplore run``: from tasks to records."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import ConfigError, ProblemError, RecordError
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.llm.meter import MeteredClient
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.records.run_records import RunRecords
from adaexplore.run.batch import Progress, run_batch
from adaexplore.run.build import (
    JudgeAccess,
    build_solver,
    judge_facts,
    open_judge,
    open_model,
    recorded_replies,
)
from adaexplore.run.memory import RunMemory, open_memory
from adaexplore.run.provenance import provenance
from adaexplore.run.solve import solve
from adaexplore.settings.config import RunConfig
from adaexplore.settings.load import resolved_yaml
from adaexplore.settings.paths import locate

logger = logging.getLogger(__name__)

JUDGE_LOG = "judge.log"
_LASTING = ("agent_type: ", "dummy: ", "tier: ", "baseline: ")
"""Keys that a run directory is bound to once it holds steps, as they begin their lines."""


@dataclass(frozen=True)
class Session:
    """An open run."""

    config: RunConfig
    tasks: Sequence[Task]
    records: RunRecords
    client: MeteredClient
    access: JudgeAccess
    facts: JudgeFacts
    memory: RunMemory
    stop: threading.Event

    def progress(self) -> Iterator[Progress]:
        """Do the work, yielding news as it comes.

        Raises:
            AdaExploreError: what stops the whole run; everything finished is on disk.
        """
        return run_batch(self.tasks, self._work, self.config.num_processes, self.stop)

    def _work(self, task: Task, worker: int) -> Iterator[StepRecord]:
        records = self.records.task(task.key, self.config.agent_type)
        steps = []
        try:
            for record in self._steps(task, worker):
                steps.append(record)
                yield record
        except ProblemError as problem:
            records.write_failure(problem)
            raise
        self.memory.task_finished(task, steps)

    def _steps(self, task: Task, worker: int) -> Iterator[StepRecord]:
        """The steps of a task: read where it is finished, else made."""
        records = self.records.task(task.key, self.config.agent_type)
        if records.has_reference() and records.reference().strip() != task.reference.strip():
            raise RecordError(
                f"{records.folder} was begun with another problem than {task.path}; choose another save_path"
            )
        if records.finished(self.config.total_steps):
            return (step for step in records.steps() if step.node.plan.step <= self.config.total_steps)
        solver = build_solver(
            self.config,
            task,
            client=self.client,
            judge=self.access.of_worker(worker),
            facts=self.facts,
            rules=self.memory.rules(),
            records=self.records,
        )
        return solve(solver, self.stop)


@contextmanager
def open_session(
    config: RunConfig, tasks: Sequence[Task], folder: Path, stop: threading.Event
) -> Iterator[Session]:
    """Make or reopen the run in ``folder``: locked for this process, judge and model at hand.

    Raises:
        AdaExploreError: something the run needs is not there; the message says what to do.
    """
    records = RunRecords(folder)
    with records.lock():
        _refuse_to_mix(records, config, "choose another save_path")
        _note_changes(records, config)
        if config.resume_from is not None:
            _take_over(records, config, tasks)
        replies = None if config.replay_path is None else recorded_replies(locate(config.replay_path))
        client = open_model(config, replies, stop)
        with open_judge(config, folder / JUDGE_LOG, stop) as access:
            records.write_config(resolved_yaml(config))
            records.write_environment(provenance(config.seed, access.identity))
            yield Session(
                config=config,
                tasks=tasks,
                records=records,
                client=client,
                access=access,
                facts=judge_facts(config, access.identity),
                memory=open_memory(config, client, folder),
                stop=stop,
            )


def _note_changes(records: RunRecords, config: RunConfig) -> None:
    """Say so when a run is gone on with under another configuration."""
    before = records.config()
    now = resolved_yaml(config)
    if before is None or before == now:
        return
    changed = sorted(set(now.splitlines()) - set(before.splitlines()))
    logger.warning("%s was begun with other settings; from here on: %s", records.folder, ", ".join(changed))


def _refuse_to_mix(records: RunRecords, config: RunConfig, otherwise: str) -> None:
    """Keep steps of another agent, or with verdicts of another kind, out of a run.

    Raises:
        ConfigError: ``records`` holds such steps; ``otherwise`` is what to do instead.
    """
    now = resolved_yaml(config).splitlines()
    for line in (records.config() or "").splitlines():
        if line.startswith(_LASTING) and line not in now and records.tasks():
            raise ConfigError(f"{records.folder} was begun with {line}; {otherwise}")


def _take_over(records: RunRecords, config: RunConfig, tasks: Sequence[Task]) -> None:
    """Copy the recorded steps of ``resume_from``: a run, or one task's folder where one task runs."""
    source = locate(config.resume_from or "")
    if not source.is_dir():
        raise RecordError(f"resume_from: there is no folder {source}")
    if source.resolve() == records.folder.resolve():
        return
    taken = 0
    for task in tasks:
        folder = source / task.key
        if not folder.is_dir() and len(tasks) == 1:
            folder = source
        if folder.is_dir():
            run = RunRecords(folder.parent)
            _refuse_to_mix(run, config, "resume_from takes a run of the same kind")
            records.task(task.key, config.agent_type).copy_from(run.task(folder.name, config.agent_type))
            taken += 1
    if taken == 0:
        raise RecordError(f"resume_from: {source} holds none of this run's tasks")
