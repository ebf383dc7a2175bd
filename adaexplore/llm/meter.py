"""Count the cost of model requests, by purpose and in total."""

from __future__ import annotations

import threading
from dataclasses import asdict, dataclass, field

from adaexplore.core.files.json_lines import JsonLines
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
    """A client that counts requests and their cost; thread-safe.

    Args:
        notes: gets a line with the cost of each reply at once, since its step may never be recorded.
    """

    def __init__(self, client: ModelClient, notes: JsonLines | None = None) -> None:
        self._client = client
        self._notes = notes
        self._lock = threading.Lock()
        self._tallies: dict[Purpose, Tally] = {}

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request through the wrapped client and count it; errors are not counted.

        Raises:
            StorageError: its cost cannot be written.
        """
        reply = self._client.complete(request)
        if self._notes is not None:
            self._notes.append({"request": request.key, **asdict(reply.usage)})
        with self._lock:
            known = self._tallies.get(request.purpose, Tally())
            self._tallies[request.purpose] = known + Tally(1, reply.usage)
        return reply

    def by_purpose(self) -> dict[Purpose, Tally]:
        """Return a copy of the tallies so far; unused purposes are missing."""
        with self._lock:
            return dict(self._tallies)

    def total(self) -> Tally:
        return sum(self.by_purpose().values(), Tally())
