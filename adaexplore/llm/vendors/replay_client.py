"""Answer requests from a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import zip_longest

from adaexplore.core.errors import ModelRequestError
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest, Purpose


@dataclass(frozen=True)
class RecordedReply:
    """One reply of an earlier run.

    Attributes:
        finish: how the reply ended.
        prompt: the prompt; None if not recorded, and then it is not compared.
        usage: the cost to report for the reply.
    """

    purpose: Purpose
    text: str
    finish: Finish = Finish.COMPLETE
    prompt: str | None = None
    usage: Usage = field(default_factory=Usage)


class ReplayClient:
    """Answers each request with the reply recorded under its key."""

    def __init__(self, replies: Mapping[str, RecordedReply]) -> None:
        self._replies = dict(replies)

    def complete(self, request: ModelRequest) -> ModelReply:
        """Return the recorded reply to ``request``.

        Raises:
            ModelRequestError: no reply was recorded, or it answers another prompt.
        """
        recorded = self._replies.get(request.key)
        if recorded is None:
            raise ModelRequestError(
                f"the recording has no reply for {request.key}; replay with the settings it was made with"
            )
        if recorded.purpose is not request.purpose:
            raise ModelRequestError(
                f"the recording has a {recorded.purpose} reply for {request.key}, "
                f"but the request is for a {request.purpose} one; replay with the settings it was made with"
            )
        if recorded.prompt is not None and recorded.prompt != request.prompt:
            lines = zip_longest(recorded.prompt.split("\n"), request.prompt.split("\n"))
            line = next(number for number, (old, new) in enumerate(lines, 1) if old != new)
            raise ModelRequestError(
                f"the prompt of {request.key} differs from the recorded one from line {line} on; "
                "replay with the settings and the version it was made with"
            )
        return ModelReply(recorded.text, recorded.finish, recorded.usage, "replay")
