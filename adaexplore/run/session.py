"""One invocation of ``adaexplore run``: from tasks to records."""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from adaexplore.core.draft import DraftOutcome
from adaexplore.core.errors import AdaExploreError, JudgeError, ProblemError, RecordError
from adaexplore.core.plan import StepKind
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.core.usage import Usage
from adaexplore.llm.budget import Budget, Limits
from adaexplore.llm.meter import MeteredClient
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.records.run_records import RunRecords
from adaexplore.records.steering import Steering
from adaexplore.records.task_records import TaskRecords
from adaexplore.run.batch import Progress, run_batch
from adaexplore.run.build import (
    JudgeAccess,
    build_solver,
    judge_facts,
    open_judge,
    open_model,
)
from adaexplore.run.estimate import FREE, estimate
from adaexplore.run.memory import RunMemory, open_memory
from adaexplore.run.origin import Fork, origin, refuse_other_origin, refuse_to_mix, taken_over, to_take
from adaexplore.run.provenance import provenance
from adaexplore.run.replay import (
    RecordedJudge,
    recorded_bans,
    recorded_notes,
    recorded_pins,
    recorded_replies,
    recorded_seeds,
)
from adaexplore.run.seeds import load_seeds
from adaexplore.run.solve import solve
from adaexplore.run.spending import spent
from adaexplore.settings.config import RunConfig
from adaexplore.settings.load import resolved_yaml
from adaexplore.settings.paths import locate

logger = logging.getLogger(__name__)

JUDGE_LOG = "judge.log"
_MEMORY = ("general_memory_path: ", "knowledge_1_threshold: ", "memory_update: ")
"""Keys that decide which rules prompts show, as they begin their lines."""


@dataclass(frozen=True)
class Session:
    """An open run; ``replayed`` is the recorded one that it repeats.

    ``seeds`` are kernels to begin with, by task. Where ``rules_of`` recorded the rules of a task these hold,
    and not what the memory has by now.
    """

    config: RunConfig
    tasks: Sequence[Task]
    records: RunRecords
    client: MeteredClient
    access: JudgeAccess
    facts: JudgeFacts
    memory: RunMemory
    seeds: Mapping[str, tuple[str, ...]]
    rules_of: RunRecords | None
    stop: threading.Event
    budget: Budget | None = None
    steering: Steering | None = None
    replayed: RunRecords | None = None

    def progress(self) -> Iterator[Progress]:
        """Do the work, yielding news as it comes.

        Raises:
            AdaExploreError: what stops the whole run; everything finished is on disk.
        """
        config = self.config
        return run_batch(self.tasks, self._work, config.num_processes, self.stop, config.max_wall_s)

    def _work(self, task: Task, worker: int) -> Iterator[StepRecord]:
        try:
            yield from self._steps(task, worker)
        except ProblemError as problem:
            self.records.task(task.key, self.config.agent_type).write_failure(problem)
            raise
        self.memory.task_finished(self.records, task.key)

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
            judges=self.access.of_task(worker, self.config.parallel_steps),
            facts=self.facts,
            rules=self._rules(task),
            seeds=self._seeds(records),
            profiles=self.config.profile and self.access.identity.device == "cuda",
            triton=dict(self.access.identity.versions).get("triton"),
            records=self.records,
            budget=self.budget,
            steering=self.steering,
            pinned={} if self.replayed is None else recorded_pins(self.replayed, task.key),
            notes={} if self.replayed is None else recorded_notes(self.replayed, task.key),
            bans={} if self.replayed is None else recorded_bans(self.replayed, task.key),
        )
        steps = solve(solver, self.stop)
        recorded = None if self.replayed is None else self.replayed.task(task.key)
        if recorded is None or recorded.finished(self.config.total_steps) or recorded.failure() is not None:
            return steps
        return islice(steps, recorded.step_count())  # the recorded run was stopped there

    def _rules(self, task: Task) -> tuple[str, ...]:
        """The rules in a task's prompts."""
        kept = None if self.rules_of is None else self.rules_of.task(task.key).rules()
        return self.memory.rules() if kept is None else kept

    def _seeds(self, records: TaskRecords) -> tuple[str, ...]:
        """The kernels that a task begins with; one that began without any stays so."""
        seeds = self.seeds.get(records.folder.name, ())
        begun = [step for step in records.summaries() if step.kind is not StepKind.DUMMY_ROOT]
        if seeds and begun and begun[0].outcome is not DraftOutcome.SEED:
            logger.warning("%s was begun without seed_kernel and goes on without", records.folder)
            return ()
        return seeds


@contextmanager
def open_session(
    config: RunConfig,
    tasks: Sequence[Task],
    folder: Path,
    stop: threading.Event,
    *,
    fork: Fork | None = None,
    replayed: RunRecords | None = None,
) -> Iterator[Session]:
    """Make or reopen the run in ``folder``: locked for this process, judge and model at hand.

    Args:
        config: what to do.
        tasks: for which problems.
        folder: where to record it.
        stop: set from outside, ends the run.
        fork: the run whose steps this one begins with.
        replayed: a recorded run that answers in place of the judge.

    Raises:
        AdaExploreError: something the run needs is not there; the message says what to do.
    """
    records, begun = RunRecords(folder), folder.exists()
    with _no_empty_folders(folder), records.lock():
        try:
            with _opened(config, tasks, records, stop, fork, replayed) as session:
                yield session
        except (AdaExploreError, OSError) as error:
            if not begun and records.config() is None:
                records.remove_empty(*([] if isinstance(error, JudgeError) else [JUDGE_LOG]))
            raise


@contextmanager
def _no_empty_folders(folder: Path) -> Iterator[None]:
    """Remove ``folder`` and those above that were made for a run which came to nothing, where empty."""
    made = [path for path in (folder, *folder.parents) if not path.exists()]
    try:
        yield
    except (AdaExploreError, OSError):
        for path in made:
            with suppress(OSError):
                path.rmdir()
        raise


@contextmanager
def _opened(
    config: RunConfig,
    tasks: Sequence[Task],
    records: RunRecords,
    stop: threading.Event,
    fork: Fork | None,
    replayed: RunRecords | None,
) -> Iterator[Session]:
    """What may refuse to run comes first, what costs time or writes comes last."""
    records.refuse_newer_format()
    refuse_to_mix(records, config, "choose another save_path")
    refuse_other_origin(records, fork, replayed)
    told = origin(records, fork, replayed)
    _note_changes(records, config)
    before = records if fork is None or records.tasks() else RunRecords(fork.run)
    rules_of = replayed or (records if _same_memory(before, config) else None)
    taken = []
    if config.resume_from is not None:
        taken += to_take(records, config, tasks, locate(config.resume_from), "resume_from")
    if fork is not None:
        taken += to_take(records, config, tasks, fork.run, "--fork", fork.at)
    if replayed is not None:
        taken += taken_over(records, tasks, replayed)
    replies = None
    if config.replay_path is not None:
        replies = recorded_replies(RunRecords.existing(locate(config.replay_path)), paid=replayed is not None)
    client = open_model(config, replies, stop, records)
    memory = open_memory(config, client)
    seeds = load_seeds(config, tasks) if replayed is None else recorded_seeds(replayed)
    with _judge(config, records.folder / JUDGE_LOG, stop, replayed) as access:
        facts, memory = judge_facts(config, access.identity), memory.under(access.identity)
        for taking in taken:
            taking.take()
        budget = _budget(config, tasks, records, client, facts, memory.rules())
        records.write_config(resolved_yaml(config))
        records.write_environment(provenance(config.seed, access.identity) | told)
        yield Session(
            config=config,
            tasks=tasks,
            records=records,
            client=client,
            access=access,
            facts=facts,
            memory=memory,
            seeds=seeds,
            rules_of=rules_of,
            stop=stop,
            budget=budget,
            steering=Steering(records.folder),
            replayed=replayed,
        )


def _budget(
    config: RunConfig,
    tasks: Sequence[Task],
    records: RunRecords,
    client: MeteredClient,
    facts: JudgeFacts,
    rules: tuple[str, ...],
) -> Budget | None:
    """What the run may still spend, earlier sessions counted; None where nothing is limited."""
    limits = Limits(config.max_cost_usd, config.max_total_tokens, config.max_wall_s)
    if limits == Limits():
        return None
    before, steps = spent(records)
    expected = Usage()
    if config.server_type not in FREE:
        expected = estimate(config, tasks, facts, rules).dearest_step(config.model_name, config.service_tier)
    return Budget(
        limits,
        lambda: client.total().usage,
        before=before,
        steps=steps,
        expected=expected,
    )


def _judge(
    config: RunConfig, log_path: Path, stop: threading.Event, replayed: RunRecords | None
) -> AbstractContextManager[JudgeAccess]:
    if replayed is None:
        return open_judge(config, log_path, stop)
    judge = RecordedJudge(replayed)
    return nullcontext(JudgeAccess((judge,), judge.identity()))


def _same_memory(records: RunRecords, config: RunConfig) -> bool:
    """Whether the settings of the skill memory are those with which ``records`` was begun."""
    now = resolved_yaml(config).splitlines()
    before = (records.config() or "").splitlines()
    return all(line in now for line in before if line.startswith(_MEMORY))


def _note_changes(records: RunRecords, config: RunConfig) -> None:
    """Say so when a run is gone on with under another configuration."""
    before = records.config()
    now = resolved_yaml(config)
    if before is None or before == now:
        return
    changed = sorted(set(now.splitlines()) - set(before.splitlines()))
    logger.warning("%s was begun with other settings; from here on: %s", records.folder, ", ".join(changed))
