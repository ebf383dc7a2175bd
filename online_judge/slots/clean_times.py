"""What references take on one device with no candidate around; outlives the evaluators that measure it."""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from typing import Final

from adaexplore.core.identity import text_digest
from adaexplore.core.wire import EvaluationRequest

_MOST: Final = 10_000


class CleanTimes:
    """Milliseconds by problem, precision and kind of baseline; safe to use from threads."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._lock = threading.Lock()
        self._ms: OrderedDict[str, float] = OrderedDict()

    @staticmethod
    def key(request: EvaluationRequest) -> str:
        """Return what a time belongs to."""
        parts = (request.original_model_src, request.dtype_str, request.tf32, request.baseline)
        return text_digest(repr(parts))

    def get(self, key: str) -> float | None:
        """Return the time of this reference, where it was measured."""
        with self._lock:
            return self._ms.get(key)

    def note(self, key: str, ms: object) -> None:
        """Keep what an evaluator says, if it is a time; the first one stays."""
        if not isinstance(ms, float) or not math.isfinite(ms) or ms <= 0:
            return
        with self._lock:
            self._ms.setdefault(key, ms)
            while len(self._ms) > _MOST:
                self._ms.popitem(last=False)
