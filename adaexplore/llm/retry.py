"""Retry a service after temporary failures: backoff with full jitter, honouring Retry-After."""

from __future__ import annotations

import logging
import math
import random
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import TypeVar

from adaexplore.core.errors import Interrupted, ModelUnavailableError
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import ModelClient, ModelReply, ModelRequest

logger = logging.getLogger(__name__)
T = TypeVar("T")

_LOUD_WAIT_S = 10.0


class ServiceTrouble(Exception):
    """A temporary failure; never leaves this package.

    Attributes:
        reason: one line for the user.
        retry_after_s: the wait that the service asks for; None if it asks for none.
        usage: the cost that the service counted before the failure.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None, usage: Usage | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.usage = usage or Usage()


@dataclass(frozen=True)
class RetryPolicy:
    """How often and how long to try.

    Attributes:
        max_attempts: total number of requests, including the first.
        max_wait_s: sum of the waits between them; a wait that would exceed it ends the attempts.
        base_s: upper bound of the first wait, doubled with every further one.
        cap_s: upper bound of a wait, or of the time added to the wait that the service asks for.
    """

    max_attempts: int = 8
    max_wait_s: float = 600.0
    base_s: float = 1.0
    cap_s: float = 60.0


class Retry:
    """Calls until an answer arrives, the policy's limits are reached, or ``stop`` is set.

    Args:
        stop: an event; when set, a wait ends at once.
        sleep: waits so many seconds; by default interruptible by ``stop`` and by signals.
        rng: source of the jitter; unseeded, because no record depends on it.
    """

    def __init__(
        self,
        policy: RetryPolicy | None = None,
        *,
        stop: threading.Event | None = None,
        sleep: Callable[[float], object] | None = None,
        rng: random.Random | None = None,
    ) -> None:
        self._policy = policy or RetryPolicy()
        self._stop = stop or threading.Event()
        self._sleep = sleep or self._stop.wait
        self._rng = rng or random.Random()

    def call(self, ask: Callable[[], T]) -> T:
        """Call ``ask`` until it does not raise :class:`ServiceTrouble`; return its answer.

        Raises:
            ModelUnavailableError: the limits were reached.
            Interrupted: ``stop`` was set while waiting.
        """
        attempt, waited_s = 1, 0.0
        while True:
            try:
                return ask()
            except ServiceTrouble as trouble:
                last = trouble
            delay_s = self._delay_s(attempt, last.retry_after_s)
            gave_up = f"{last.reason}; gave up after {attempt} attempt{'s' if attempt > 1 else ''}"
            if attempt >= self._policy.max_attempts:
                raise ModelUnavailableError(gave_up)
            if waited_s + delay_s > self._policy.max_wait_s:
                raise ModelUnavailableError(
                    f"{gave_up}: the next one is due in {delay_s:.0f} s, waiting may take "
                    f"{self._policy.max_wait_s:.0f} s in all; run again later"
                )
            level = logging.WARNING if delay_s >= _LOUD_WAIT_S else logging.INFO
            logger.log(level, "%s; attempt %d in %.1f s", last.reason, attempt + 1, delay_s)
            self._sleep(delay_s)
            if self._stop.is_set():
                raise Interrupted("stopped while waiting for the model; run the same command to continue")
            attempt, waited_s = attempt + 1, waited_s + delay_s

    def _delay_s(self, attempt: int, retry_after_s: float | None) -> float:
        """Return the wait that the service asks for plus the backoff, in case it asks for too little."""
        longest = min(self._policy.cap_s, self._policy.base_s * 2.0 ** (attempt - 1))
        return (retry_after_s or 0.0) + self._rng.uniform(0.0, longest)


class RetryingClient:
    """A client that asks another one again after temporary failures.

    The cost of a reply includes that of failed attempts.
    """

    def __init__(self, client: ModelClient, retry: Retry) -> None:
        self._client = client
        self._retry = retry

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request.

        Raises:
            ModelRequestError: from the wrapped client.
            ModelUnavailableError: no answer in spite of retries.
            Interrupted: stopped while waiting.
        """
        lost: list[Usage] = []

        def ask() -> ModelReply:
            try:
                return self._client.complete(request)
            except ServiceTrouble as trouble:
                lost.append(trouble.usage)
                raise

        reply = self._retry.call(ask)
        return replace(reply, usage=sum(lost, reply.usage))


def retry_after_s(headers: Mapping[str, str], now: Callable[[], float] = time.time) -> float | None:
    """Return the wait that a response asks for, in seconds; None without a readable one.

    Args:
        headers: case-insensitive response headers; ``Retry-After`` may be seconds or an HTTP date,
            ``retry-after-ms`` (milliseconds) is preferred if present.
        now: wall clock, seconds since the epoch.
    """
    for name, scale in (("retry-after-ms", 1e-3), ("retry-after", 1.0)):
        try:
            seconds = float(headers.get(name, "")) * scale
        except ValueError:
            continue
        if math.isfinite(seconds):
            return max(0.0, seconds)
    try:
        return max(0.0, parsedate_to_datetime(headers.get("retry-after", "")).timestamp() - now())
    except (TypeError, ValueError, OverflowError):
        return None
