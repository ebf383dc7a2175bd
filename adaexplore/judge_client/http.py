"""A judge behind an address: jobs of protocol v2 where it takes them, else the release's v1."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from adaexplore.core.errors import (
    JudgeError,
    JudgeRequestError,
    JudgeUnavailableError,
    ProblemError,
    RequestTooLargeError,
)
from adaexplore.core.profile import Profile
from adaexplore.core.task import Task
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import (
    BaselineKind,
    CompileReport,
    DtypeName,
    EvaluationRequest,
    JobRequest,
    ProblemReport,
    ProblemRequest,
    ProfileReport,
    Tf32Policy,
    Tier,
)
from adaexplore.judge_client.connection import Connection
from adaexplore.judge_client.jobs import read_answer, run_job
from adaexplore.judge_client.protocol import CompileFinding, JudgeIdentity, sandbox_of

logger = logging.getLogger(__name__)

REFERENCE_FAILED = "Reference failed"
"""How an answer's ``error`` begins when the problem, not the candidate, is at fault."""
RUNTIME_LIMIT = "Kernel execution timeout"
"""How it begins when a candidate ran too long, on a judge that answers so without a status."""
_AS_CANDIDATE = "\n\nModelNew = Model\n"
_FAILED_EVALUATIONS = 3
"""Times the judge may fail at one candidate before the run stops."""


@dataclass(frozen=True)
class Evaluation:
    """How candidates are to be judged.

    Attributes:
        tolerance: absolute and relative, per element.
        tf32: float32 matrix precision policy for both sides.
        trials: number of fresh input sets.
        timed_runs: number of timed runs.
        gpu_name: names a recorded baseline, where the judge has one for it.
        device: index of the GPU to use, for judges in manual allocation mode.
        timeout_s: limit on one evaluation, queueing and running counted apart.
        tier: precision that outputs must reach.
        baseline: what the reference runs as when it is timed.
        force: measure anew where the judge knows a verdict already.
        tune_s: seconds that the judge may spend on a sweep of a candidate's tunables; 0 leaves them.
        try_reference: judge the reference as its own candidate when a problem is checked.
    """

    tolerance: float
    tf32: Tf32Policy
    trials: int = 5
    timed_runs: int = 100
    gpu_name: str | None = None
    device: int | None = None
    timeout_s: int = 1800
    tier: Tier = "legacy"
    baseline: BaselineKind = "eager"
    force: bool = False
    tune_s: float = 0.0
    try_reference: bool = False


class HttpJudge:
    """A judge at ``base_url``; retries what is the judge's trouble, never what is a verdict."""

    def __init__(
        self,
        base_url: str,
        evaluation: Evaluation,
        *,
        token: str | None = None,
        own_log: Path | None = None,
        patience_s: float = 600.0,
        client: httpx.Client | None = None,
        sleep: Callable[[float], object] = time.sleep,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Use the judge at ``base_url``.

        ``evaluation`` goes with every candidate, the rest to the
        :class:`~adaexplore.judge_client.connection.Connection`.
        """
        self._evaluation = evaluation
        self._takes_jobs = True
        self._connection = Connection(
            base_url,
            token=token,
            own_log=own_log,
            patience_s=patience_s,
            client=client,
            sleep=sleep,
            clock=clock,
        )

    def identity(self) -> JudgeIdentity:
        """See :class:`Judge`; one try, so that a wrong address or a missing GPU is said at once."""
        connection = self._connection
        health = connection.object_in(connection.get("/health", 30.0))
        cuda = bool(health.get("cuda_available"))
        if not cuda and health.get("judge_device", "cuda") == "cuda":
            raise JudgeUnavailableError(
                f"the judge at {connection.url} sees no GPU and would refuse every candidate; "
                "set judge_device: cpu, or use one that has a GPU"
            )
        devices = health.get("devices") or [{}]
        name = devices[0].get("name") if isinstance(devices[0], dict) else None
        versions = health.get("versions")
        return JudgeIdentity(
            device="cuda" if cuda else str(health["judge_device"]),
            hardware=str(health.get("hardware") or name or "unknown"),
            versions=tuple(sorted(versions.items())) if isinstance(versions, dict) else (),
            sandbox=sandbox_of(health),
        )

    def check_problem(self, task: Task) -> None:
        """See :class:`Judge`; a judge without the question (the release's) is not asked."""
        report = self._ask_about(ProblemRequest(original_model_src=task.reference, dtype_str=task.dtype))
        if report is not None and not report.ok:
            raise ProblemError(f"{task.path}: {report.reason}")
        if self._evaluation.try_reference:
            verdict = self.evaluate(task, task.reference + _AS_CANDIDATE)
            if not verdict.correct:
                why = " ".join(verdict.feedback.split()) or verdict.status.value
                raise ProblemError(f"{task.path}: the reference fails as its own candidate: {why}")

    def examine_problem(self, source: str, dtype: DtypeName) -> ProblemReport:
        """See :class:`Judge`."""
        report = self._ask_about(ProblemRequest(original_model_src=source, dtype_str=dtype, thorough=True))
        if report is None or (report.ok and report.traits is None):
            raise JudgeError(
                f"the judge at {self._connection.url} cannot examine problems; use one of this version"
            )
        return report

    def _ask_about(self, request: ProblemRequest) -> ProblemReport | None:
        """What the judge says of a reference; None where it does not know the question."""
        body = request.model_dump(exclude=set() if request.thorough else {"thorough"})
        answer = self._connection.ask("POST", "/v2/problem", body=body, timeout_s=_held_s(request.timeout))
        if answer.status_code in (404, 405):
            return None
        return read_answer(ProblemReport, self._connection.object_in(answer), self._connection.url)

    def evaluate(self, task: Task, source: str, best_so_far: float | None = None) -> Verdict:
        """See :class:`Judge`."""
        wanted = self._evaluation
        tune_s = 0.0 if wanted.force else wanted.tune_s  # what is measured again stays as it is
        request = self._request(task, source, tune_s, best_so_far)
        for _ in range(_FAILED_EVALUATIONS):
            try:
                found = self._by_job(request) if self._takes_jobs else self._by_v1(request)
                if found is None:
                    self._takes_jobs = False
                    found = self._by_v1(request)
            except RequestTooLargeError as refused:
                return Verdict(status=Status.LOAD, metadata={"feedback": _too_large(task, source, refused)})
            if isinstance(found, Verdict):
                return found
            if found.startswith(REFERENCE_FAILED):
                raise ProblemError(f"{task.path}: {found}")
            logger.warning("the judge could not evaluate: %s", found)
        raise JudgeError(f"the judge at {self._connection.url} could not evaluate: {found}; see its log")

    def compile(self, task: Task, source: str) -> CompileFinding:
        """See :class:`Judge`; a judge without such jobs (the release's) checks nothing."""
        try:
            report = self.compile_report(task, source)
        except RequestTooLargeError as refused:
            return CompileFinding(Status.LOAD, message=_too_large(task, source, refused))
        if report is None:
            return CompileFinding(Status.NOT_CHECKED, message="this judge has no compile jobs")
        return self._compiled(report)

    def compile_report(self, task: Task, source: str, *, asm: bool = False) -> CompileReport | None:
        """Have a candidate compiled, with its PTX where ``asm``; None from a judge without such jobs.

        Raises:
            ProblemError: the reference fails.
            JudgeError: the judge failed in spite of retries.
        """
        asked = self._request(task, source).model_copy(update={"asm": asm})
        for _ in range(_FAILED_EVALUATIONS):
            request = JobRequest(kind="compile", request=asked)
            answer = run_job(self._connection, request) if self._takes_jobs else None
            if answer is None:
                return None
            if isinstance(answer.report, CompileReport):
                return answer.report
            error = answer.error or f"the job was {answer.state} without a reason"
            if error.startswith(REFERENCE_FAILED):
                raise ProblemError(f"{task.path}: {error}")
            logger.warning("the judge could not compile: %s", error)
        raise JudgeError(f"the judge at {self._connection.url} could not compile: {error}; see its log")

    def _compiled(self, report: CompileReport) -> CompileFinding:
        try:
            status = Status(report.status)
        except ValueError as cause:
            raise JudgeError(f"{self._connection.url} answered an unknown status: {cause}") from cause
        return CompileFinding(status, report.kernel, report.line, report.message, report.error_name)

    def profile(self, task: Task, source: str) -> Profile | None:
        """See :class:`Judge`."""
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

    def _request(
        self, task: Task, source: str, tune_s: float = 0.0, best_so_far: float | None = None
    ) -> EvaluationRequest:
        wanted = self._evaluation
        return EvaluationRequest(
            original_model_src=task.reference,
            custom_model_src=source,
            num_correct_trials=wanted.trials,
            num_perf_trials=wanted.timed_runs,
            measure_performance=True,
            backend="triton",
            dtype_str=task.dtype,
            device=wanted.device,
            gpu_name=wanted.gpu_name,
            level=str(task.level),
            problem_id=task.problem_id,
            timeout=wanted.timeout_s,
            tolerance=wanted.tolerance,
            tf32=wanted.tf32,
            tier=wanted.tier,
            baseline=wanted.baseline,
            tune_s=tune_s,
            best_so_far=best_so_far,
        )

    def _by_job(self, request: EvaluationRequest) -> Verdict | str | None:
        """The verdict, or the error that kept the judge from one; None where it takes no jobs."""
        answer = run_job(self._connection, JobRequest(request=request, force=self._evaluation.force))
        if answer is None:
            return None
        if answer.verdict is None:
            return answer.error or f"the job was {answer.state} without a reason"
        return self._verdict(answer.verdict.model_dump())

    def _by_v1(self, request: EvaluationRequest) -> Verdict | str:
        """The same by one held request."""
        answer = self._connection.object_in(
            self._connection.ask(
                "POST",
                "/evaluate",
                body=request.model_dump(exclude={"kernel_code", "task_id", "test_source"}),
                timeout_s=_held_s(self._evaluation.timeout_s),
            )
        )
        if not _failed(answer):
            return self._verdict(answer)
        error = str(answer.get("error") or "it gave no reason")
        if error.startswith(RUNTIME_LIMIT):
            return Verdict(status=Status.TIMEOUT, metadata={"error": error})
        return error

    def _verdict(self, metrics: dict[str, Any]) -> Verdict:
        try:
            return Verdict.from_metrics(metrics)
        except (KeyError, TypeError, ValueError) as cause:
            url = self._connection.url
            raise JudgeError(f"{url} answered something that is no verdict: {cause}") from cause


def _too_large(task: Task, source: str, error: RequestTooLargeError) -> str:
    """Return the feedback on a candidate that is too large to be sent; raises where the problem is."""
    if len(source) < len(task.reference):
        raise error
    size = len(source.encode("utf-8", "replace"))
    return f"load: the candidate has {size} bytes; {error}\nNext: write a shorter program."


def _held_s(timeout_s: float) -> float:
    """How long a judge may hold a request: it may queue for ``timeout_s`` and then run for ``timeout_s``."""
    return 2 * timeout_s + 60


def _failed(answer: dict[str, Any]) -> bool:
    """Whether an answer tells of the judge's own trouble: an error, and no status beside it."""
    return answer.get("success") is False and "status" not in (answer.get("metadata") or {})
