"""A recorded run in place of a model and a judge."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import TypeAdapter, ValidationError

from adaexplore.core.draft import request_name
from adaexplore.core.environment import Environment, ReferenceFacts
from adaexplore.core.errors import ConfigError, ProblemError, RecordError
from adaexplore.core.judging.profile import Profile
from adaexplore.core.plan import Purpose
from adaexplore.core.task import Task
from adaexplore.core.text.identity import source_identity
from adaexplore.core.usage import Usage
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import CompileReport, DtypeName, ProblemReport
from adaexplore.judge_client.protocol import JudgeIdentity
from adaexplore.llm.protocol import Finish
from adaexplore.llm.vendors.vendor import RecordedReply
from adaexplore.records.run_records import RunRecords

T = TypeVar("T")
_IDENTITY = TypeAdapter(JudgeIdentity)


def recorded_replies(run: RunRecords, *, paid: bool = False) -> dict[str, RecordedReply]:
    """Return the replies of a recorded run by request key, for ``server_type: replay``.

    They cost nothing. With ``paid``, the first reply of each step has the cost of the whole step.

    Raises:
        RecordError: a record is damaged.
        ConfigError: the run holds no steps, or no replies (the release recorded none).
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
        if not any(run.task(key).step_count() for key in run.tasks()):
            raise ConfigError(f"{run.folder} holds no recorded step yet; continue it, then replay it")
        raise ConfigError(f"{run.folder} holds no recorded replies; name a run of this version")
    return replies


class RecordedJudge:
    """A judge that answers with the recorded verdicts of a run; RecordError if there is none."""

    def __init__(self, run: RunRecords) -> None:
        """Read the judge's recorded answers in ``run``.

        Raises:
            RecordError: a record is damaged.
        """
        self._run = run
        self._verdicts: dict[tuple[str, str], Verdict] = {}
        self._profiles: dict[tuple[str, str], Profile | None] = {}
        self._findings: dict[tuple[str, str], CompileReport] = {}
        for key in run.tasks():
            records = run.task(key)
            profiles = records.profiles()
            self._findings |= {(key, name): found for name, found in records.findings().items()}
            for record in records.steps():
                source, step = record.draft.source, record.node.plan.step
                if record.verdict is not None and record.evaluated:
                    self._verdicts.setdefault(_name(key, record.written or source), record.verdict)
                if step in profiles:
                    self._profiles[_name(key, source)] = profiles[step]

    def identity(self) -> JudgeIdentity:
        try:
            return _IDENTITY.validate_python(self._run.environment().get("judge", {}))
        except ValidationError as error:
            raise RecordError(f"{self._run.folder} is damaged: environment.json names no judge") from error

    def environment(self) -> Environment | None:
        return self._run.judge_environment()

    def check_problem(self, task: Task) -> ReferenceFacts | None:
        records = self._run.task(task.key)
        failure = records.failure()
        if failure is not None and failure.error_type == ProblemError.__name__:
            raise ProblemError(failure.message)
        return records.reference_facts()

    def examine_problem(self, source: str, dtype: DtypeName) -> ProblemReport:
        """Fail: a run records no examinations."""
        raise RecordError(f"{self._run.folder} holds no examination of a problem")

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        return self._found(self._verdicts, task, source, "verdict on")

    def compile(self, task: Task, source: str, *, asm: bool = False) -> CompileReport:
        return self._found(self._findings, task, source, "compiler's finding about")

    def profile(self, task: Task, source: str) -> Profile | None:
        return self._found(self._profiles, task, source, "profile of")

    def _found(self, known: Mapping[tuple[str, str], T], task: Task, source: str, what: str) -> T:
        name = _name(task.key, source)
        if name not in known:
            raise RecordError(
                f"{self._run.folder} has no {what} a program that task {task.key} reached; "
                "replay with the version that made the run"
            )
        return known[name]


def _name(key: str, source: str) -> tuple[str, str]:
    return key, source_identity(source)
