"""A judge at an address: jobs of protocol v2 if it supports them, else the release's v1."""

import logging
from collections.abc import Callable
from typing import Any, TypeVar

from adaexplore.core.environment import Environment, ReferenceFacts, TierLimits
from adaexplore.core.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeUnavailableError,
    ProblemError,
    RequestTooLargeError,
)
from adaexplore.core.job_answer import JobAnswer
from adaexplore.core.judging.parts import FailureText
from adaexplore.core.judging.profile import Profile
from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import from_metrics
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import (
    CompileReport,
    DtypeName,
    EvaluationRequest,
    JobRequest,
    ProblemReport,
    ProblemRequest,
    ProfileReport,
    Tier,
    Workers,
    WorkerStatus,
    fits,
)
from adaexplore.judge_client.connection import Connection
from adaexplore.judge_client.jobs import run_job
from adaexplore.judge_client.protocol import JudgeIdentity, sandbox_of, unchecked

logger = logging.getLogger(__name__)
T = TypeVar("T")

REFERENCE_FAILED = "Reference failed"
"""Prefix of an answer's ``error`` if the problem, not the candidate, is at fault."""
RUNTIME_LIMIT = "Kernel execution timeout"
"""Prefix of ``error`` if a candidate ran too long, from a judge that sends no status."""
TRIALS = 5
"""Usual number of fresh input sets on which outputs are compared."""
TIMED_RUNS = 100
_LONGEST_S = 3600
_FAILED_EVALUATIONS = 3
"""Judge failures on one candidate after which the run stops."""


class HttpJudge:
    """The judge behind ``connection``; its failures are retried, verdicts never.

    Args:
        settings: the fields of every candidate's request besides problem and source.
        force: measure again even if the judge knows the verdict.
        try_reference: judge the reference as its own candidate when a problem is checked.
        trials: number of fresh input sets on which outputs are compared.
    """

    def __init__(
        self,
        connection: Connection,
        settings: EvaluationRequest,
        *,
        force: bool = False,
        try_reference: bool = False,
        trials: int = TRIALS,
    ) -> None:
        self._connection = connection
        self._settings = settings
        self._force = force
        self._try_reference = try_reference
        self._trials = trials
        self._takes_jobs = True

    def identity(self) -> JudgeIdentity:
        """See :class:`Judge`; without retries, so that a wrong address or missing GPU shows at once."""
        connection = self._connection
        health = connection.object_in(connection.get("/health", 30.0))
        cuda = bool(health.get("cuda_available"))
        if reason := health.get("reason"):
            raise JudgeUnavailableError(f"the judge at {connection.url} has no device now: {reason}")
        if not cuda and health.get("judge_device", "cuda") == "cuda":
            raise JudgeUnavailableError(
                f"the judge at {connection.url} sees no GPU and would refuse every candidate; "
                "set judge_device: cpu, or use a judge with a GPU"
            )
        devices = health.get("devices") or []
        names = [str(each["name"]) for each in devices if isinstance(each, dict) and "name" in each]
        names = [str(health.get("hardware") or ""), *names]
        hardware = next(filter(None, names), "unknown")
        if gpus := self._settings.gpus:
            fitting = [name for name in names if fits(gpus, name)]
            if not fitting:
                there = ", ".join(sorted({*filter(None, names)})) or "none"
                raise JudgeUnavailableError(
                    f"the judge at {connection.url} has no GPU {self._settings.gpu!r} now; "
                    f"choose gpu_models among: {there}"
                )
            hardware = fitting[0]
        versions = health.get("versions")
        return JudgeIdentity(
            device="cuda" if cuda else str(health["judge_device"]),
            hardware=hardware,
            versions=dict(sorted(versions.items())) if isinstance(versions, dict) else {},
            sandbox=sandbox_of(health),
            compile_target=str(health.get("compile_target") or ""),
        )

    def environment(self) -> Environment | None:
        answer = self._connection.ask("GET", "/v2/environment", timeout_s=30.0)
        return None if answer.status_code in (404, 405) else self._connection.read(answer, Environment)

    def workers(self) -> list[WorkerStatus]:
        """Return the judge's devices; empty if it does not list them. One try, as :meth:`identity`."""
        answer = self._connection.get("/v2/workers", 30.0)
        return [] if answer.status_code in (404, 405) else self._connection.read(answer, Workers).workers

    def check_problem(self, task: Task) -> ReferenceFacts | None:
        """See :class:`Judge`; a judge without this request (the release's) is not asked."""
        request = ProblemRequest(
            original_model_src=task.judged_reference,
            dtype_str=task.dtype,
            direction=task.direction,
            hidden_workloads=task.hidden_workloads,
        )
        report = self._ask_about(request)
        if report is not None and not report.ok:
            raise ProblemError(f"{task.path}: {report.reason}")
        if not self._try_reference:
            return None
        verdict = self.evaluate(task, task.as_candidate)
        if not verdict.correct:
            why = " ".join(verdict.feedback.split()) or verdict.status.value
            raise ProblemError(f"{task.path}: the reference fails as its own candidate: {why}")
        return ReferenceFacts(
            tensors=[] if report is None else report.tensors,
            limits=_limits(verdict),
            profile=None if verdict.runtime_ms is None else self.profile(task, task.as_candidate),
        )

    def examine_problem(self, source: str, dtype: DtypeName) -> ProblemReport:
        report = self._ask_about(ProblemRequest(original_model_src=source, dtype_str=dtype, thorough=True))
        if report is None or (report.ok and report.traits is None):
            raise JudgeError(
                f"the judge at {self._connection.url} cannot examine problems; use a judge of this version"
            )
        return report

    def _ask_about(self, request: ProblemRequest) -> ProblemReport | None:
        """Return the judge's report on a reference; None if it does not know the request."""
        body, timeout_s = request.model_dump(), _held_s(request.timeout)
        answer = self._connection.ask("POST", "/v2/problem", body=body, timeout_s=timeout_s)
        return None if answer.status_code in (404, 405) else self._connection.read(answer, ProblemReport)

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        tune_s = 0.0 if self._force else self._settings.tune_s  # a repeated measurement keeps the tunables
        request = self._request(task, source, tune_s=tune_s, best_so_far=best_so_far)

        def ask() -> Verdict | str:
            found = self._by_job(request) if self._takes_jobs else None
            if found is not None:
                return found
            self._takes_jobs = False
            return self._by_v1(request)

        try:
            return self._repeated(task, "evaluate", ask)
        except RequestTooLargeError as refused:
            return Verdict(status=Status.LOAD, feedback=_too_large(task, source, refused))

    def _repeated(self, task: Task, what: str, ask: Callable[[], T | str]) -> T:
        """Call ``ask`` until it returns no error of the judge."""
        for _ in range(_FAILED_EVALUATIONS):
            found = ask()
            if not isinstance(found, str):
                return found
            if found.startswith(REFERENCE_FAILED):
                raise ProblemError(f"{task.path}: {found}")
            logger.warning("the judge could not %s: %s", what, found)
        raise JudgeError(f"the judge at {self._connection.url} could not {what}: {found}; see its log")

    def compile(self, task: Task, source: str, *, asm: bool = False) -> CompileReport:
        """See :class:`Judge`; a judge without compile jobs (the release's) checks nothing."""
        request = JobRequest(kind="compile", request=self._request(task, source, asm=asm))

        def ask() -> CompileReport | str:
            answer = run_job(self._connection, request) if self._takes_jobs else None
            if answer is None:
                return unchecked()
            return answer.report if isinstance(answer.report, CompileReport) else _reason(answer)

        try:
            report = self._repeated(task, "compile", ask)
        except RequestTooLargeError as refused:
            return CompileReport(ok=False, status=Status.LOAD, message=_too_large(task, source, refused))
        return unchecked(report.message) if report.status is Status.NOT_CHECKED else report

    def profile(self, task: Task, source: str) -> Profile | None:
        request = JobRequest(kind="profile", request=self._request(task, source))
        try:
            answer = run_job(self._connection, request) if self._takes_jobs else None
        except JudgeRequestError as error:
            logger.warning("no profile: %s", error)
            return None
        report = None if answer is None else answer.report
        if not isinstance(report, ProfileReport):
            if answer is not None:
                logger.warning("no profile: %s", answer.error or f"the job was {answer.state}")
            return None
        if report.profile is None:
            logger.info("no profile: %s", report.message.partition("\n")[0])
        return report.profile

    def _request(self, task: Task, source: str, **more: object) -> EvaluationRequest:
        fields = {
            "original_model_src": task.judged_reference,
            "custom_model_src": source,
            "num_correct_trials": self._trials,
            "num_perf_trials": TIMED_RUNS,
            "measure_performance": True,
            "backend": "triton",
            "dtype_str": task.dtype,
            "direction": task.direction,
            "level": str(task.level),
            "problem_id": task.problem_id,
            "hidden_workloads": task.hidden_workloads,
            "tune_s": 0.0,
        }
        return self._settings.model_copy(update=fields | more)

    def _by_job(self, request: EvaluationRequest) -> Verdict | str | None:
        """Return the verdict or the judge's error from a job; None if the judge has no jobs."""
        answer = run_job(self._connection, JobRequest(request=request, force=self._force))
        if answer is None:
            return None
        return _reason(answer) if answer.verdict is None else answer.verdict

    def _by_v1(self, request: EvaluationRequest) -> Verdict | str:
        """Return the verdict or the judge's error from one blocking request."""
        answer = self._connection.object_in(
            self._connection.ask(
                "POST",
                "/evaluate",
                body=request.model_dump(exclude={"kernel_code", "task_id", "test_source"}),
                timeout_s=_held_s(request.timeout),
            )
        )
        if not _failed(answer):
            try:
                return from_metrics(answer)
            except (KeyError, TypeError, ValueError) as cause:
                url = self._connection.url
                raise JudgeError(f"the answer of {url} is not a verdict: {cause}") from cause
        error = str(answer.get("error") or "it gave no reason")
        if error.startswith(RUNTIME_LIMIT):
            return Verdict(status=Status.TIMEOUT, failure=FailureText(error=error))
        return error


def _reason(answer: JobAnswer) -> str:
    return answer.error or f"the job was {answer.state} without a reason"


def _too_large(task: Task, source: str, error: RequestTooLargeError) -> str:
    """Return the feedback on a candidate that is too large to send; raise if the problem is too large."""
    if len(source) < len(task.judged_reference):
        raise error
    size = len(source.encode("utf-8", "replace"))
    return f"load: the candidate has {size} bytes; {error}\nNext: write a shorter program."


def _limits(verdict: Verdict) -> dict[Tier, TierLimits]:
    found = {} if verdict.workloads or verdict.precision is None else verdict.precision.limits
    return {tier: TierLimits(rms=each.rms, peak=each.peak) for tier, each in found.items()}


def _held_s(timeout_s: int | None) -> float:
    """Return how long a request may take: ``timeout_s`` in the queue and ``timeout_s`` running."""
    return 2 * (timeout_s or _LONGEST_S) + 60


def _failed(answer: dict[str, Any]) -> bool:
    """Return whether an answer reports a failure of the judge: an error without a status."""
    return answer.get("success") is False and "status" not in (answer.get("metadata") or {})
