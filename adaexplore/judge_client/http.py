"""The judge over HTTP, protocol v1."""

from __future__ import annotations

import logging
import random
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from adaexplore.core.errors import (
    Interrupted,
    JudgeError,
    JudgeRequestError,
    JudgeUnavailableError,
    ProblemError,
)
from adaexplore.core.task import Task
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import EvaluationRequest, ProblemReport, ProblemRequest, Tf32Policy
from adaexplore.judge_client.protocol import JudgeIdentity

logger = logging.getLogger(__name__)

REFERENCE_FAILED = "Reference failed"
"""How a v1 answer's ``error`` begins when the problem, not the candidate, is at fault."""
RUNTIME_LIMIT = "Kernel execution timeout"
"""How it begins when a candidate ran too long, on a judge that answers so without a status."""
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
    """

    tolerance: float
    tf32: Tf32Policy
    trials: int = 5
    timed_runs: int = 100
    gpu_name: str | None = None
    device: int | None = None
    timeout_s: int = 1800


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

        Args:
            base_url: for example ``http://127.0.0.1:12017``.
            evaluation: sent with every candidate.
            token: sent as bearer token with every request.
            own_log: the log of a judge that belongs to this run: when it is gone, nobody restarts it.
            patience_s: seconds of trouble after which a call gives up.
            client: an HTTP client to use instead of an own one.
            sleep: waits that many seconds; answers True when the run was asked to stop.
            clock: seconds, monotonic.
        """
        self._url = base_url.rstrip("/")
        self._evaluation = evaluation
        self._own_log = own_log
        self._patience_s = patience_s
        self._client = client or httpx.Client(trust_env=False)
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._sleep = sleep
        self._clock = clock
        self._jitter = random.Random()

    def identity(self) -> JudgeIdentity:
        """See :class:`Judge`; one try, so that a wrong address or a missing GPU is said at once."""
        try:
            answer = self._client.get(f"{self._url}/health", headers=self._headers, timeout=30.0)
        except httpx.TransportError as error:
            raise self._nobody(error) from error
        health = _json(answer, self._url)
        cuda = bool(health.get("cuda_available"))
        if not cuda and health.get("judge_device", "cuda") == "cuda":
            raise JudgeUnavailableError(
                f"the judge at {self._url} sees no GPU and would refuse every candidate; "
                "set judge_device: cpu, or use one that has a GPU"
            )
        devices = health.get("devices") or [{}]
        name = devices[0].get("name") if isinstance(devices[0], dict) else None
        versions = health.get("versions")
        return JudgeIdentity(
            device="cuda" if cuda else str(health["judge_device"]),
            hardware=str(health.get("hardware") or name or "unknown"),
            versions=tuple(sorted(versions.items())) if isinstance(versions, dict) else (),
        )

    def check_problem(self, task: Task) -> None:
        """See :class:`Judge`; a judge without the question (the release's) is not asked."""
        request = ProblemRequest(original_model_src=task.reference, dtype_str=task.dtype)
        answer = self._post("/v2/problem", request.model_dump(), request.timeout)
        if answer.status_code in (404, 405):
            return
        report = ProblemReport.model_validate(_json(answer, self._url))
        if not report.ok:
            raise ProblemError(f"{task.path}: {report.reason}")

    def evaluate(self, task: Task, source: str) -> Verdict:
        """See :class:`Judge`."""
        wanted = self._evaluation
        request = EvaluationRequest(
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
        )
        body = request.model_dump(exclude={"kernel_code", "task_id", "test_source"})
        answer: dict[str, Any] = {}
        for _ in range(_FAILED_EVALUATIONS):
            answer = _json(self._post("/evaluate", body, wanted.timeout_s), self._url)
            if not _failed(answer):
                break
            error = str(answer.get("error") or "it gave no reason")
            if error.startswith(RUNTIME_LIMIT):
                return Verdict(status=Status.TIMEOUT, metadata={"error": error})
            if error.startswith(REFERENCE_FAILED):
                raise ProblemError(f"{task.path}: {error}")
            logger.warning("the judge could not evaluate: %s", error)
        else:
            raise JudgeError(f"the judge at {self._url} could not evaluate: {error}; see its log")
        try:
            return Verdict.from_metrics(answer)
        except (KeyError, TypeError, ValueError) as cause:
            raise JudgeError(f"{self._url} answered something that is no verdict: {cause}") from cause

    def _post(self, path: str, body: dict[str, Any], timeout_s: float) -> httpx.Response:
        """POST until the judge answers something final, or patience ends."""
        begun = self._clock()
        delay_s = 1.0
        while True:
            try:
                # The judge may queue for timeout_s and then run for timeout_s.
                answer = self._client.post(
                    self._url + path,
                    json=body,
                    headers=self._headers,
                    timeout=httpx.Timeout(2 * timeout_s + 60, connect=10),
                )
                trouble = _trouble(answer)
                asked_s = _retry_after_s(answer)
                cause: Exception | None = None
            except httpx.TransportError as error:
                if self._own_log is not None and isinstance(error, httpx.ConnectError):
                    raise JudgeUnavailableError(
                        f"the run's own judge has ended (out of memory?); see {self._own_log}, "
                        "then run the same command again"
                    ) from error
                trouble, asked_s, cause = f"{type(error).__name__}: {error}", None, error
            else:
                if trouble is None:
                    return answer
            if self._clock() - begun > self._patience_s:
                if cause is not None:
                    raise self._nobody(cause) from cause
                raise JudgeUnavailableError(f"the judge at {self._url} stays in trouble: {trouble}")
            wait_s = asked_s if asked_s is not None else delay_s * self._jitter.uniform(0.5, 1.0)
            logger.warning("judge: %s; trying again in %.0f s", trouble, wait_s)
            if self._sleep(wait_s):
                raise Interrupted("stopped while waiting for the judge")
            delay_s = min(2 * delay_s, 30.0)

    def _nobody(self, error: Exception) -> JudgeUnavailableError:
        return JudgeUnavailableError(
            f"no judge answers at {self._url} ({type(error).__name__}); start one with "
            "`adaexplore judge`, correct remote_eval_url, or set use_remote_eval: false"
        )


def _failed(answer: dict[str, Any]) -> bool:
    """Whether an answer tells of the judge's own trouble: an error, and no status beside it."""
    return answer.get("success") is False and "status" not in (answer.get("metadata") or {})


def _trouble(answer: httpx.Response) -> str | None:
    """Why to ask again, or None when the answer is final.

    Raises:
        JudgeRequestError: the request itself is refused.
    """
    _raise_for_token(answer)
    if answer.status_code in (400, 413, 422):
        raise JudgeRequestError(f"the judge refused the request ({answer.status_code}): {answer.text[:500]}")
    if answer.status_code in (408, 429) or answer.status_code >= 500:
        if answer.status_code == 501:
            raise JudgeRequestError(f"the judge cannot do this: {answer.text[:500]}")
        return f"HTTP {answer.status_code} {answer.text[:200]}"
    return None


def _raise_for_token(answer: httpx.Response) -> None:
    if answer.status_code in (401, 403):
        raise JudgeRequestError(
            f"the judge refused access ({answer.status_code}): set ADAEXPLORE_JUDGE_TOKEN to the token that "
            f"the judge was started with; it said {answer.text[:200]!r}"
        )


def _retry_after_s(answer: httpx.Response) -> float | None:
    try:
        return min(max(float(answer.headers.get("Retry-After", "")), 0.0), 300.0)
    except ValueError:
        return None


def _json(answer: httpx.Response, url: str) -> dict[str, Any]:
    _raise_for_token(answer)
    try:
        data = answer.json()
    except ValueError as error:
        raise JudgeError(f"{url} does not speak the judge's protocol: {answer.text[:100]!r}") from error
    if answer.status_code != 200 or not isinstance(data, dict):
        raise JudgeError(f"{url} answered {answer.status_code}: {answer.text[:200]!r}")
    return data
