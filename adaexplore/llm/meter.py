"""Counting what model requests cost, by purpose and in all."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field

from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import ModelClient, ModelReply, ModelRequest, Purpose


@dataclass(frozen=True)
class Tally:
    """Answered requests and their cost."""

    requests: int = 0
    usage: Usage = field(default_factory=Usage)

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.requests + other.requests, self.usage + other.usage)


class MeteredClient:
    """A client that counts what passes through it; safe to share between threads."""

    def __init__(self, client: ModelClient) -> None:
        self._client = client
        self._lock = threading.Lock()
        self._tallies: dict[Purpose, Tally] = {}

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request through the wrapped client and count it; errors are not counted."""
        reply = self._client.complete(request)
        with self._lock:
            known = self._tallies.get(request.purpose, Tally())
            self._tallies[request.purpose] = known + Tally(1, reply.usage)
        return reply

    def by_purpose(self) -> dict[Purpose, Tally]:
        """A copy of the tallies so far; purposes never asked for are absent."""
        with self._lock:
            return dict(self._tallies)

    def total(self) -> Tally:
        """The sum over all purposes."""
        return sum(self.by_purpose().values(), Tally())
