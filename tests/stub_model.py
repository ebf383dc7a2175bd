"""A model client for tests: its answers are a pure function of the request."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable

from adaexplore.core.plan import Purpose
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest


class StubModel:
    """Writes ``class ModelNew`` with one number; a small step changes the number."""

    def __init__(self, answer: Callable[[ModelRequest], str | None] | None = None) -> None:
        self.requests: list[ModelRequest] = []
        self._answer = answer
        self._lock = threading.Lock()

    def complete(self, request: ModelRequest) -> ModelReply:
        with self._lock:
            self.requests.append(request)
        text = self._answer(request) if self._answer is not None else None
        return ModelReply(
            _default(request) if text is None else text, Finish.COMPLETE, Usage(4, 2, 1), "stub"
        )


def _default(request: ModelRequest) -> str:
    step = request.key.split("/")[1]
    if request.purpose is Purpose.LARGE:
        return f"```python\nclass ModelNew:\n    number = {step}\n```"
    if request.purpose is Purpose.SMALL:
        number = re.findall(r"number = (\d+)", request.prompt)[-1]
        edit = f"number = {int(number) + 100}"
        return f"<old_str_1>number = {number}</old_str_1>\n<new_str_1>{edit}</new_str_1>"
    return "1. Change the number."
