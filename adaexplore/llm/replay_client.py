"""Answering from a recording."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from adaexplore.core.errors import ModelRequestError
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest, Purpose


@dataclass(frozen=True)
class RecordedReply:
    """One reply out of an earlier run.

    Attributes:
        purpose: what it was asked for.
        text: what was answered.
        finish: how the reply ended.
        prompt: what was asked; None where that was not kept, and then it is not compared.
        usage: what the answer is said to cost.
    """

    purpose: Purpose
    text: str
    finish: Finish = Finish.COMPLETE
    prompt: str | None = None
    usage: Usage = field(default_factory=Usage)


class ReplayClient:
    """Answers each request with the reply recorded under its key."""

    def __init__(self, replies: Mapping[str, RecordedReply], model_name: str = "replay") -> None:
        self._replies = dict(replies)
        self._model_name = model_name

    def complete(self, request: ModelRequest) -> ModelReply:
        """The recorded reply to ``request``.

        Raises:
            ModelRequestError: none was recorded, or it answered something else.
        """
        recorded = self._replies.get(request.key)
        if recorded is None:
            raise ModelRequestError(
                f"the recording has no reply for {request.key}; replay with the settings it was made with"
            )
        if recorded.purpose is not request.purpose:
            raise ModelRequestError(
                f"the recording has a {recorded.purpose} reply for {request.key}, "
                f"where a {request.purpose} one is asked for; replay with the settings it was made with"
            )
        if recorded.prompt is not None and recorded.prompt != request.prompt:
            where = _where(recorded.prompt, request.prompt)
            raise ModelRequestError(
                f"the prompt of {request.key} differs from the recorded one {where}; "
                "replay with the settings and the version it was made with"
            )
        return ModelReply(recorded.text, recorded.finish, recorded.usage, self._model_name)


def _where(recorded: str, asked: str) -> str:
    """The first line at which two different prompts part, 1-based."""
    pairs = zip(recorded.splitlines(), asked.splitlines(), strict=False)
    same = next((index for index, (old, new) in enumerate(pairs) if old != new), None)
    if same is None:
        same = min(len(recorded.splitlines()), len(asked.splitlines()))
    return f"from line {same + 1} on"
