"""One invocation of ``adaexplore run``: from tasks to records."""

import logging
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from adaexplore.agent.agent import Agent
from adaexplore.core.directions import Directions
from adaexplore.core.draft import DraftOutcome
from adaexplore.core.environment import Conditions, Environment
from adaexplore.core.errors import AdaExploreError, JudgeError, ProblemError, RecordError
from adaexplore.core.plan import StepKind
from adaexplore.core.step import StepRecord
from adaexplore.core.task import Task
from adaexplore.core.usage import Usage
from adaexplore.judge_client.access import JudgeAccess, open_judge
from adaexplore.llm.budget import Budget
from adaexplore.llm.meter import MeteredClient
from adaexplore.prompts.blocks import JudgeFacts
from adaexplore.prompts.directions import offered_directions
from adaexplore.records.provenance import provenance
from adaexplore.records.recorded import recorded_seeds, recorded_steering
from adaexplore.records.run_records import RunRecords
from adaexplore.records.steering import Steering
from adaexplore.records.task_records import TaskRecords
from adaexplore.run.batch import Progress, run_batch
from adaexplore.run.build import agent_options, judge_facts, open_model, search_knobs
from adaexplore.run.estimate import estimate
from adaexplore.run.memory import RunMemory, open_memory
from adaexplore.run.origin import Fork, origin, refuse_other_origin, refuse_to_mix, to_take
from adaexplore.run.replay import RecordedJudge, recorded_replies
from adaexplore.run.solve import solve
from adaexplore.run.spending import spent
from adaexplore.run.step import Solver
from adaexplore.run.vendors import vendor_of
from adaexplore.run.verdicts import Verdicts
from adaexplore.search.build import build_policy
from adaexplore.settings.config import RunConfig
from adaexplore.settings.load import resolved_yaml
from adaexplore.settings.paths import locate
from adaexplore.settings.yaml_text import dump_mapping
from adaexplore.tasks.seeds import load_seeds

logger = logging.getLogger(__name__)

JUDGE_LOG = "judge.log"
_MEMORY = ("general_memory_path", "knowledge_1_threshold", "memory_update")
"""Keys that decide which rules prompts show."""


@dataclass(frozen=True)
class Session:
    """An open run; ``replayed`` is the recorded run that it repeats.

    ``earlier`` is the cost of earlier sessions. ``seeds`` are the starting kernels by task. If ``rules_of``
    recorded the rules of a task, prompts show these, not the current memory.
    """

    config: RunConfig
    tasks: Sequence[Task]
    records: RunRecords
    client: MeteredClient
    earlier: Usage
    access: JudgeAccess
    facts: JudgeFacts
    memory: RunMemory
    seeds: Mapping[str, tuple[str, ...]]
    rules_of: RunRecords | None
    stop: threading.Event
    budget: Budget
    steering: Steering
    replayed: RunRecords | None = None

    @property
    def usage(self) -> Usage:
        """The cost of the run so far."""
        return self.earlier + self.client.usage

    def progress(self) -> Iterator[Progress[StepRecord]]:
        """Run all tasks and yield their progress.

        Raises:
            AdaExploreError: the whole run stopped; everything finished is on disk.
        """
        work = [(task, self._steps(task, home)) for home, task in enumerate(self.tasks)]
        return run_batch(work, self.config.num_processes, self.stop, self.config.max_wall_s)

    def _steps(self, task: Task, home: int) -> Iterator[StepRecord]:
        """Yield the steps of a task: read them if it is finished, else solve it; then update the memory."""
        config, records = self.config, self.records.task(task.key, self.config.agent_type)
        if records.has_reference() and (
            task.reference.strip() != records.reference().strip()
            or task.hidden_workloads != records.hidden_workloads()
            or task.full_reference != records.full_reference()
        ):
            raise RecordError(
                f"{records.folder} was started with another problem than {task.path}; "
                "choose another save_path"
            )
        if not records.has_reference() and records.numbers():
            records.write_reference(task.reference, task.hidden_workloads, task.full_reference)
        if records.finished(config.total_steps):
            yield from (step for step in records.steps() if step.node.plan.step <= config.total_steps)
        else:
            steps = solve(self._solver(task, records, home), self.stop)
            before = None if self.replayed is None else self.replayed.task(task.key)
            if before is not None and not before.finished(config.total_steps) and before.failure() is None:
                steps = islice(steps, before.step_count())  # the recorded run stopped there
            try:
                yield from steps
            except ProblemError as error:
                if not records.step_count():
                    records.write_failure(error)
                raise
        self.memory.task_finished(self.records, task.key)

    def _solver(self, task: Task, records: TaskRecords, home: int) -> Solver:
        config = self.config
        return Solver(
            agent=Agent(self.client, task, self.facts, self._rules(task), agent_options(config)),
            policy=build_policy(config.agent_type, search_knobs(config)),
            verdicts=Verdicts(self.access, task, home),
            records=records,
            seed=config.seed,
            total_steps=config.total_steps,
            parallel_steps=config.parallel_steps,
            seeds=self._seeds(records),
            directions=offered_directions(task.reference) if config.directions else Directions(),
            profiles=config.profile and self.access.identity.device == "cuda",
            budget=self.budget,
            steering=self.steering,
            conditions=self._conditions(task),
            steered={} if self.replayed is None else recorded_steering(self.replayed, task.key),
        )

    def _conditions(self, task: Task) -> Conditions:
        config, identity = self.config, self.access.identity
        return Conditions(
            hardware=identity.hardware,
            dtype=task.dtype,
            direction=task.direction,
            tf32=config.tf32,
            tier=config.tier,
            versions=dict(identity.versions) or None,
            problem=task.digest,
        )

    def _rules(self, task: Task) -> tuple[str, ...]:
        kept = None if self.rules_of is None else self.rules_of.task(task.key).rules()
        return self.memory.rules() if kept is None else kept

    def _seeds(self, records: TaskRecords) -> tuple[str, ...]:
        """Return the starting kernels of a task; a task that was started without any has none."""
        seeds = self.seeds.get(records.folder.name, ())
        begun = [step for step in records.summaries() if step.kind is not StepKind.DUMMY_ROOT]
        if seeds and begun and begun[0].outcome is not DraftOutcome.SEED:
            logger.warning("%s was started without seed_kernel and continues without", records.folder)
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
    """Create or reopen the run in ``folder``, lock it, and connect its judge and model.

    Args:
        config: the run's settings.
        tasks: the problems to solve.
        folder: the run directory.
        stop: an event; when set, the run ends.
        fork: the run whose first steps this run copies.
        replayed: a recorded run that answers instead of the judge.

    Raises:
        AdaExploreError: the run lacks something; the message says what to do.
    """
    records, begun = RunRecords(folder), folder.exists()
    records.refuse_inside_another()
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
    """Remove ``folder`` and created parent folders if they are empty because the run failed to start."""
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
    """Open the run: first the checks that may refuse it, last the parts that take time or write files."""
    records.refuse_newer_format()
    refuse_to_mix(records, config, "choose another save_path")
    refuse_other_origin(records, fork, replayed)
    told = origin(records, fork, replayed)
    _note_changes(records, config)
    before = records if fork is None or records.tasks() else RunRecords(fork.run)
    rules_of = replayed or (records if _same_memory(before, config) else None)
    taken = to_take(records, config, tasks, fork, replayed)
    replies = None
    if config.replay_path is not None:
        replies = recorded_replies(RunRecords.existing(locate(config.replay_path)), paid=replayed is not None)
    client = open_model(
        config, replies, stop, mailbox=records.mailbox, run=str(told["id"]), notes=records.replies
    )
    memory = open_memory(config, client)
    seeds = load_seeds(config, tasks) if replayed is None else recorded_seeds(replayed)
    with _judge(config, records.folder / JUDGE_LOG, stop, replayed) as access:
        environment = None if config.preset == "paper" else _environment(records, access)
        facts, memory = judge_facts(config, access.identity, environment), memory.under(access.identity)
        for taking in taken:
            taking.take()
        earlier, steps = spent(records)
        expected = _dearest_step(config, tasks, facts, memory.rules())
        budget = Budget(config, client, before=earlier, steps=steps, expected=expected)
        records.write_config(resolved_yaml(config))
        if environment is not None:
            records.write_judge_environment(environment)
        planned = {"tasks": records.planned(*(task.key for task in tasks))}
        records.write_environment(provenance(config.seed, access.identity.to_record()) | told | planned)
        yield Session(
            config=config,
            tasks=tasks,
            records=records,
            client=client,
            earlier=earlier,
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


def _dearest_step(
    config: RunConfig, tasks: Sequence[Task], facts: JudgeFacts, rules: tuple[str, ...]
) -> Usage:
    """Return the maximum cost of a step, which matters only if there is a limit."""
    limits = {config.max_cost_usd, config.max_total_tokens, config.max_wall_s}
    if vendor_of(config.server_type).cost == "nothing" or limits == {None}:
        return Usage()
    return estimate(config, tasks, facts, rules).dearest_step(config.model_name, config.service_tier)


def _judge(
    config: RunConfig, log_path: Path, stop: threading.Event, replayed: RunRecords | None
) -> AbstractContextManager[JudgeAccess]:
    if replayed is None:
        return open_judge(config, log_path, stop)
    return nullcontext(JudgeAccess([RecordedJudge(replayed)]))


def _environment(records: RunRecords, access: JudgeAccess) -> Environment | None:
    """Return the judge's recorded environment; ask the judge for a new run or if the judge changed."""
    known, identity = records.judge_environment(), access.identity
    told = identity.versions.items()
    if known is not None and known.hardware == identity.hardware and told <= known.versions.items():
        return known
    return access.first.environment()


def _same_memory(records: RunRecords, config: RunConfig) -> bool:
    """Return whether the settings of the skill memory are those with which ``records`` was started."""
    before = records.settings()
    return all(before.get(key, getattr(config, key)) == getattr(config, key) for key in _MEMORY)


def _note_changes(records: RunRecords, config: RunConfig) -> None:
    """Warn if a run continues with another configuration."""
    before, now = records.settings(), config.model_dump(mode="json")
    usual = RunConfig().model_dump(mode="json")
    # a key that an earlier version did not have had the effect of its default
    changed = [key for key in sorted(now) if before and now[key] != before.get(key, usual[key])]
    if not changed:
        return
    told = (" ".join(dump_mapping({key: now[key]}).split()) for key in changed)
    logger.warning("%s was started with other settings; from here on: %s", records.folder, ", ".join(told))
