"""Answer requests from a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

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
            where = _where(recorded.prompt, request.prompt)
            raise ModelRequestError(
                f"the prompt of {request.key} differs from the recorded one {where}; "
                "replay with the settings and the version it was made with"
            )
        return ModelReply(recorded.text, recorded.finish, recorded.usage, "replay")


def _where(recorded: str, asked: str) -> str:
    """Return the first line at which two different prompts differ, from 1."""
    pairs = zip(recorded.splitlines(), asked.splitlines(), strict=False)
    same = next((index for index, (old, new) in enumerate(pairs) if old != new), None)
    if same is None:
        same = min(len(recorded.splitlines()), len(asked.splitlines()))
    return f"from line {same + 1} on"
