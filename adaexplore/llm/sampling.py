"""Optional parameters of a request, adapted once to what the model accepts."""

from __future__ import annotations

import logging
import re
import threading
from collections.abc import Mapping

from adaexplore.llm.rejection import Rejection

logger = logging.getLogger(__name__)

_RENAMES = {"max_completion_tokens": "max_tokens"}
_ALIASES = {
    "output_config": ("output_config", "output_config.effort", "effort"),
    "prompt_cache_options": ("prompt_cache_options", "prompt_cache_options.mode", "prompt_cache_breakpoint"),
    "reasoning": ("reasoning", "reasoning.effort", "effort"),
}
_UNSUPPORTED_CODES = frozenset({"unsupported_parameter", "unsupported_value", "unknown_parameter"})
_UNSUPPORTED_WORDS = re.compile(
    r"unsupported|not (be )?(supported|permitted|allowed|accepted|compatible)|n[o']t support|unrecognized"
    r"|unknown|unexpected|deprecated|only the default|may only be|cannot be (set|used|specified)",
    re.IGNORECASE,
)
_BAD_VALUE_CODES = re.compile(r"invalid_value|invalid_type|(above|below)_m(ax|in)", re.IGNORECASE)


class SamplingParameters:
    """Fields of a request's JSON that a model may reject; shared by the threads of one client."""

    def __init__(self, label: str, body: Mapping[str, object]) -> None:
        self._label = label
        self._body = dict(body)
        self._lock = threading.Lock()

    def current(self) -> dict[str, object]:
        with self._lock:
            return dict(self._body)

    def give_way(self, rejection: Rejection, sent: Mapping[str, object]) -> bool:
        """Drop or rename a rejected parameter, for this and all later requests.

        Return whether :meth:`current` now differs from ``sent``, the rejected parameters, so that a retry
        makes sense.
        """
        name = _rejected_name(rejection, sent)
        if name is None:
            return False
        with self._lock:
            if name not in self._body:  # another thread changed it first
                return True
            value = self._body.pop(name)
            renamed = _RENAMES.get(name)
            if renamed:
                self._body[renamed] = value
        action = f"sending it as {renamed}" if renamed else "leaving it out"
        logger.warning("%s does not accept %s (%s); %s from now on", self._label, name, value, action)
        return True


def _rejected_name(rejection: Rejection, sent: Mapping[str, object]) -> str | None:
    if rejection.status not in (400, 422) or not _says_unsupported(rejection):
        return None
    for name in sent:
        if rejection.parameter in _ALIASES.get(name, (name,)):
            return name
    mentions = {name: _position(name, rejection.message) for name in sent}
    mentioned = {name: position for name, position in mentions.items() if position is not None}
    return min(mentioned, key=mentioned.__getitem__) if mentioned else None


def _says_unsupported(rejection: Rejection) -> bool:
    """Return whether the parameter is unsupported, rather than a value that the user should correct."""
    if rejection.code in _UNSUPPORTED_CODES:
        return True
    if rejection.code and _BAD_VALUE_CODES.search(rejection.code):
        return False
    return _UNSUPPORTED_WORDS.search(rejection.message) is not None


def _position(name: str, message: str) -> int | None:
    starts = [
        found.start()
        for alias in _ALIASES.get(name, (name,))
        if (found := re.search(rf"(?<!\w){re.escape(alias)}(?!\w)", message))
    ]
    return min(starts, default=None)
