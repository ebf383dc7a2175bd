"""Count the cost of model requests."""

from __future__ import annotations

import threading
from dataclasses import asdict

from adaexplore.core.files.json_lines import JsonLines
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import ModelClient, ModelReply, ModelRequest


class MeteredClient:
    """A client that counts its answered requests and their cost; thread-safe.

    Args:
        notes: gets a line with the cost of each reply at once, since its step may never be recorded.
    """

    def __init__(self, client: ModelClient, notes: JsonLines | None = None) -> None:
        self.requests = 0
        self.usage = Usage()
        self._client = client
        self._notes = notes
        self._lock = threading.Lock()

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request through the wrapped client and count it; errors are not counted.

        Raises:
            StorageError: its cost cannot be written.
        """
        reply = self._client.complete(request)
        if self._notes is not None:
            self._notes.append({"request": request.key, **asdict(reply.usage)})
        with self._lock:
            self.requests += 1
            self.usage += reply.usage
        return reply
