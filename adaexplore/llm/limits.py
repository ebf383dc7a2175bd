"""Rate limits of a model service, shared by all tasks of a run."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from adaexplore.core.errors import Interrupted
from adaexplore.core.text.tokens import estimate_tokens
from adaexplore.llm.protocol import ModelClient, ModelReply, ModelRequest
from adaexplore.settings.config import RunConfig

WINDOW_S = 60.0
_LOOK_S = 0.5


def limited(client: ModelClient, config: RunConfig, stop: threading.Event) -> ModelClient:
    """Return ``client`` within the limits of ``config``, if it has any."""
    limits = (config.max_concurrent_requests, config.requests_per_minute, config.tokens_per_minute)
    return client if limits == (None, None, None) else LimitedClient(client, config, stop)


@dataclass
class _Tokens:
    """Tokens that count for a minute."""

    since: float
    count: int


class LimitedClient:
    """A client that delays requests, in order of arrival, until the limits of ``config`` allow them.

    The tokens of a request count from its start, as an estimate until the answer states them; tokens of the
    answer count from then on. A request above the limit of a minute starts when no request counts any more.
    Once ``stop`` is set, waiting ends.
    """

    def __init__(
        self,
        client: ModelClient,
        config: RunConfig,
        stop: threading.Event,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._config = config
        self._stop = stop
        self._clock = clock
        self._changed = threading.Condition()
        self._waiting: deque[object] = deque()
        self._begun: deque[float] = deque()
        self._tokens: deque[_Tokens] = deque()
        self._in_flight = 0

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request when the limits allow it.

        Raises:
            Interrupted: ``stop`` was set while waiting.
            ModelError, ServiceTrouble: from the wrapped client.
        """
        with self._admitted(estimate_tokens(request.transcript)) as read:
            reply = self._client.complete(request)
            written = reply.usage.output_tokens or estimate_tokens(reply.text)
            with self._changed:
                read.count = reply.usage.input_tokens or read.count
                self._tokens.append(_Tokens(self._clock(), written))
        return reply

    @contextmanager
    def _admitted(self, tokens: int) -> Iterator[_Tokens]:
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
            try:
                while self._waiting[0] is not ticket or (wait_s := self._wait_s(tokens)) > 0:
                    if self._stop.is_set():
                        raise Interrupted("stopped while waiting for the model's rate limit")
                    self._changed.wait(_LOOK_S if self._waiting[0] is not ticket else min(wait_s, _LOOK_S))
            finally:
                self._waiting.remove(ticket)
                self._changed.notify_all()
            read = _Tokens(self._clock(), tokens)
            self._begun.append(read.since)
            self._tokens.append(read)
            self._in_flight += 1
        try:
            yield read
        finally:
            with self._changed:
                self._in_flight -= 1
                self._changed.notify_all()

    def _wait_s(self, tokens: int) -> float:
        """Return the minimum wait of the next request; 0 if it may start."""
        config, now = self._config, self._clock()
        while self._begun and self._begun[0] <= now - WINDOW_S:
            self._begun.popleft()
        while self._tokens and self._tokens[0].since <= now - WINDOW_S:
            self._tokens.popleft()
        if config.max_concurrent_requests is not None and self._in_flight >= config.max_concurrent_requests:
            return _LOOK_S
        oldest = []
        if config.requests_per_minute is not None and len(self._begun) >= config.requests_per_minute:
            oldest.append(self._begun[0])
        spent = sum(each.count for each in self._tokens)
        if config.tokens_per_minute is not None and spent > 0 and spent + tokens > config.tokens_per_minute:
            oldest.append(self._tokens[0].since)
        return max((max(since + WINDOW_S - now, 1e-3) for since in oldest), default=0.0)
