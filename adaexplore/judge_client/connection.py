"""HTTP to one judge: retry until the answer is final."""

import logging
import math
import random
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import httpx
from pydantic import BaseModel, ValidationError

from adaexplore.core.errors import (
    Interrupted,
    JudgeError,
    JudgeRequestError,
    JudgeUnavailableError,
    RequestTooLargeError,
)
from adaexplore.core.text.json_text import parse_json

logger = logging.getLogger(__name__)
Model = TypeVar("Model", bound=BaseModel)

_MAX_RETRY_AFTER_S = 300.0
_LONGEST_DELAY_S = 30.0
_FAREWELL_S = 5.0


def open_client() -> httpx.Client:
    """Open an HTTP client for judges: no proxies, no limit on parallel connections."""
    return httpx.Client(trust_env=False, limits=httpx.Limits(max_connections=None))


class Connection:
    """A connection to the judge at ``url``; thread-safe."""

    def __init__(
        self,
        base_url: str,
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
            token: sent as bearer token with every request.
            own_log: the log of the run's own judge, which nothing restarts if it dies.
            patience_s: seconds of failures after which a request gives up.
            client: an HTTP client to use; by default a new one.
            sleep: waits so many seconds; returns True if the run should stop.
            clock: seconds, monotonic.
        """
        self.url = base_url.rstrip("/")
        self._own_log = own_log
        self._patience_s = patience_s
        self._client = client or open_client()
        self._headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        self._sleep = sleep
        self._clock = clock
        self._jitter = random.Random()

    def get(self, path: str, timeout_s: float) -> httpx.Response:
        """GET without retries, so that a wrong address is reported at once.

        Raises:
            JudgeUnavailableError: nothing answers.
            JudgeRequestError: the token is not the judge's.
        """
        try:
            answer = self._client.get(self.url + path, headers=self._headers, timeout=timeout_s)
        except httpx.RequestError as error:
            raise self._nobody(error) from error
        _raise_for_token(answer)
        return answer

    def ask(
        self,
        method: str,
        path: str,
        *,
        timeout_s: float,
        body: Mapping[str, Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> httpx.Response:
        """Send a request until the judge's answer is final, or patience ends.

        The request must be safe to send twice: after a broken connection it may have arrived.

        Raises:
            JudgeUnavailableError: failures for longer than ``patience_s``.
            JudgeRequestError: the judge refuses the request itself.
            Interrupted: the run was stopped while waiting.
        """
        begun = self._clock()
        delay_s = 1.0
        while True:
            try:
                answer = self._client.request(
                    method,
                    self.url + path,
                    json=body,
                    headers={**self._headers, **(headers or {})},
                    timeout=httpx.Timeout(timeout_s, connect=10),
                )
                trouble = _trouble(answer)
                asked_s = _retry_after_s(answer)
                cause: Exception | None = None
            except httpx.RequestError as error:
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
                raise JudgeUnavailableError(f"the judge at {self.url} keeps failing: {trouble}")
            wait_s = asked_s if asked_s is not None else delay_s * self._jitter.uniform(0.5, 1.0)
            logger.warning("judge: %s; trying again in %.0f s", trouble, wait_s)
            if self._sleep(wait_s):
                raise Interrupted("stopped while waiting for the judge")
            delay_s = min(2 * delay_s, _LONGEST_DELAY_S)

    def delete(self, path: str) -> None:
        """Send DELETE without retries; failures are only logged."""
        try:
            self._client.delete(self.url + path, headers=self._headers, timeout=_FAREWELL_S)
        except httpx.RequestError as error:
            logger.debug("judge: %s could not be deleted: %s", path, error)

    def stopped(self) -> bool:
        return bool(self._sleep(0.0))

    def object_in(self, answer: httpx.Response) -> dict[str, Any]:
        """Return the JSON object of a successful answer.

        Raises:
            JudgeError: the answer is something else.
        """
        try:
            data = parse_json(answer.content)
        except ValueError as error:
            raise JudgeError(
                f"{self.url} does not follow the judge's protocol: {answer.text[:100]!r}"
            ) from error
        if not answer.is_success or not isinstance(data, dict):
            raise JudgeError(f"{self.url} answered {answer.status_code}: {answer.text[:200]!r}")
        return data

    def read(self, answer: httpx.Response, model: type[Model]) -> Model:
        """Return a successful answer as ``model``.

        Raises:
            JudgeError: the answer is something else.
        """
        data = self.object_in(answer)
        try:
            return model.model_validate(data)
        except ValidationError as error:
            raise JudgeError(f"{self.url} does not follow the judge's protocol: {str(data)[:200]}") from error

    def _nobody(self, error: Exception) -> JudgeUnavailableError:
        return JudgeUnavailableError(
            f"no judge answers at {self.url} ({type(error).__name__}); start one with "
            "`adaexplore judge`, correct remote_eval_url, or set use_remote_eval: false"
        )


def _trouble(answer: httpx.Response) -> str | None:
    """Return the reason to ask again; None if the answer is final.

    Raises:
        JudgeRequestError: the request itself is refused.
    """
    _raise_for_token(answer)
    if answer.status_code in (400, 409, 413, 422):
        refused = RequestTooLargeError if answer.status_code == 413 else JudgeRequestError
        raise refused(f"the judge refused the request ({answer.status_code}): {answer.text[:500]}")
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
    """Return the seconds of ``Retry-After``; dates are not supported."""
    try:
        asked_s = float(answer.headers.get("Retry-After", ""))
    except ValueError:
        return None
    return None if math.isnan(asked_s) else min(max(asked_s, 0.0), _MAX_RETRY_AFTER_S)
