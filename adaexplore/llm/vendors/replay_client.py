"""Answer requests from a recording."""

from __future__ import annotations

from collections.abc import Mapping

from adaexplore.core.errors import ConfigError, ModelRequestError
from adaexplore.core.text.figures import first_difference
from adaexplore.llm.protocol import ModelReply, ModelRequest
from adaexplore.llm.vendors.vendor import Opening, RecordedReply, Vendor


class ReplayClient:
    """Answers each request with the reply recorded under its key.

    Prompts may differ in measured figures: the judge may have timed the kernels again.
    """

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
        line = None
        if recorded.prompt is not None:
            plain = request.prompt if request.plain is None else request.plain
            line = first_difference(recorded.prompt, request.prompt, plain)
        if line is not None:
            raise ModelRequestError(
                f"the prompt of {request.key} differs from the recorded one from line {line} on; "
                "replay with the settings and the version it was made with"
            )
        return ModelReply(recorded.text, recorded.finish, recorded.usage, "replay")


def _open(opening: Opening) -> ReplayClient:
    if opening.replies is None:
        raise ConfigError("server_type replay needs replay_path: the directory of a recorded run")
    return ReplayClient(opening.replies)


VENDOR = Vendor(
    names=("replay",),
    about="a recorded run",
    needs="`replay_path`",
    open=_open,
    cost="nothing",
    setting=("replay_path", "the recorded replies"),
    has_tiers=True,
    remembers=False,
)
