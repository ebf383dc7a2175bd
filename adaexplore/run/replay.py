"""A recorded run in place of a model and a judge."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeVar

from adaexplore.core.draft import DraftOutcome, request_name
from adaexplore.core.errors import ConfigError, ProblemError, RecordError
from adaexplore.core.identity import source_identity
from adaexplore.core.profile import Profile
from adaexplore.core.task import Task
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import DtypeName, ProblemReport
from adaexplore.judge_client.protocol import CompileFinding, JudgeIdentity, Sandbox
from adaexplore.llm.protocol import Finish, Purpose
from adaexplore.llm.replay_client import RecordedReply
from adaexplore.records.run_records import RunRecords
from adaexplore.run.verdicts import recorded_findings

T = TypeVar("T")


def recorded_replies(run: RunRecords, *, paid: bool = False) -> dict[str, RecordedReply]:
    """Replies of a recorded run by request key, for ``server_type: replay``.

    They cost nothing, or where ``paid`` the first of a step what the whole step once did.

    Raises:
        RecordError: a record is damaged.
        ConfigError: it holds no replies (the release kept none).
    """
    replies: dict[str, RecordedReply] = {}
    for key in run.tasks():
        for record in run.task(key).steps():
            purposes: list[str] = []
            for exchange in record.draft.exchanges:
                name = f"{key}/{record.node.plan.step}/{request_name(exchange.purpose, purposes)}"
                usage = record.draft.usage if paid and not purposes else Usage()
                purposes.append(exchange.purpose)
                try:
                    purpose, finish = Purpose(exchange.purpose), Finish(exchange.finish)
                except ValueError as error:
                    raise RecordError(f"{run.folder} is damaged: step {name}: {error}") from error
                replies[name] = RecordedReply(purpose, exchange.reply, finish, exchange.prompt, usage)
    if not any(reply.text for reply in replies.values()):
        raise ConfigError(f"{run.folder} holds no recorded replies; name a run of this version")
    return replies


def recorded_tasks(run: RunRecords, dtype: DtypeName) -> list[Task]:
    """The tasks of a recorded run, with the problems as they were then; "" for one that could not be run.

    Raises:
        RecordError: a task's problem was not kept, or its folder is not named ``<level>_<problem_id>``.
    """
    tasks = []
    for key in run.tasks():
        level, _, problem_id = key.partition("_")
        if not level.isdecimal():
            raise RecordError(
                f"{run.folder / key} holds a task, but is not named <level>_<problem_id>; rename it"
            )
        records = run.task(key)
        refused = records.failure() is not None and not records.has_reference()
        reference = "" if refused else records.reference()
        tasks.append(Task(int(level), problem_id, key, reference, dtype, records.reference_path))
    return tasks


def recorded_seeds(run: RunRecords) -> dict[str, tuple[str, ...]]:
    """The kernels that the tasks of a recorded run began with, by task.

    Raises:
        RecordError: a record is damaged.
    """
    seeds = {}
    for key in run.tasks():
        steps = sorted(run.task(key).steps(), key=lambda record: record.node.plan.step)
        begun = [record for record in steps if record.draft.outcome is DraftOutcome.SEED]
        seeds[key] = tuple(record.written or record.draft.source for record in begun)
    return seeds


def recorded_pins(run: RunRecords, key: str) -> dict[int, int]:
    """Return the nodes that a person pinned in a task of a recorded run, by the steps that edit them.

    Raises:
        RecordError: a record is damaged.
    """
    return {
        record.node.plan.step: record.node.plan.parent_id for record in run.task(key).steps() if record.pinned
    }


def recorded_notes(run: RunRecords, key: str) -> dict[int, str]:
    """Return what the prompts of a task of a recorded run said at a person's wish, by step.

    Raises:
        RecordError: a record is damaged.
    """
    plans = [record.node.plan for record in run.task(key).steps()]
    return {plan.step: plan.note for plan in plans if plan.note}


def recorded_bans(run: RunRecords, key: str) -> dict[int, tuple[int, ...]]:
    """Return the nodes that were left out of the search of a task of a recorded run, by step.

    Raises:
        RecordError: a record is damaged.
    """
    plans = [record.node.plan for record in run.task(key).steps()]
    return {plan.step: plan.banned for plan in plans if plan.banned}


def one_at_a_time(run: RunRecords) -> bool:
    """Whether the steps of each task of a recorded run were observed in the order in which they were planned.

    Those that it took over do not count.

    Raises:
        RecordError: a record is damaged.
    """
    orders = [
        [step.step for step in run.task(key).summaries() if step.step > 0][run.taken_over(key) :]
        for key in run.tasks()
    ]
    return all(order == sorted(order) for order in orders)


class RecordedJudge:
    """Answers about the programs of a recorded run as its judge did, without one."""

    def __init__(self, run: RunRecords) -> None:
        """Read all that the judge said in ``run``.

        Raises:
            RecordError: a record is damaged.
        """
        self._run = run
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        self._profiles: dict[tuple[str, str], Profile | None] = {}
        self._findings: dict[tuple[str, str], CompileFinding] = {}
        for key in run.tasks():
            records = run.task(key)
            profiles = records.profiles()
            self._findings |= {(key, name): found for name, found in recorded_findings(records).items()}
            for record in records.steps():
                source, step = record.draft.source, record.node.plan.step
                if record.verdict is not None and record.evaluated:
                    self._verdicts.setdefault(_name(key, record.written or source), record.verdict)
                if step in profiles:
                    self._profiles[_name(key, source)] = profiles[step]

    def identity(self) -> JudgeIdentity:
        """What the judge said about itself.

        Raises:
            RecordError: that is damaged.
        """
        told = self._run.environment().get("judge", {})
        try:
            sandbox = told.get("sandbox")
            return JudgeIdentity(
                device=str(told.get("device", "unknown")),
                hardware=str(told.get("hardware", "unknown")),
                versions=tuple(sorted(told.get("versions", {}).items())),
                sandbox=None
                if sandbox is None
                else Sandbox(tuple(sandbox["in_force"]), tuple(sandbox["missing"])),
            )
        except (AttributeError, KeyError, TypeError) as error:
            raise RecordError(f"{self._run.folder} is damaged: environment.json tells no judge") from error

    def check_problem(self, task: Task) -> None:
        """See :class:`~adaexplore.judge_client.protocol.Judge`."""
        failure = self._run.task(task.key).failure()
        if failure is not None and failure.error_type == ProblemError.__name__:
            raise ProblemError(failure.message)

    def examine_problem(self, source: str, dtype: DtypeName) -> ProblemReport:
        """A run examines no problems.

        Raises:
            RecordError: always.
        """
        raise RecordError(f"{self._run.folder} holds no examination of a problem")

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        """Return the recorded verdict.

        Raises:
            RecordError: there is none.
        """
        return self._found(self._verdicts, task, source, "verdict on")

    def compile(self, task: Task, source: str) -> CompileFinding:
        """What the compiler said.

        Raises:
            RecordError: it was not asked.
        """
        return self._found(self._findings, task, source, "compiler's finding about")

    def profile(self, task: Task, source: str) -> Profile | None:
        """The recorded profile.

        Raises:
            RecordError: none was asked for.
        """
        return self._found(self._profiles, task, source, "profile of")

    def _found(self, known: Mapping[tuple[str, str], T], task: Task, source: str, what: str) -> T:
        name = _name(task.key, source)
        if name not in known:
            raise RecordError(
                f"{self._run.folder} has no {what} a program that task {task.key} comes to; "
                "replay with the version it was made with"
            )
        return known[name]


def _name(key: str, source: str) -> tuple[str, str]:
    return key, source_identity(source)
