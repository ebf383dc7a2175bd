"""Time limits of one job: the reference's and the candidate's, whose tuning has its own."""

from __future__ import annotations

import time
from collections.abc import Callable

from online_judge.protocol.findings import Stage

_LEAST_REFERENCE_S = 30.0
_NO_LIMIT_S = 30.0  # longest wait at a time while no limit is running


class CandidateTimeout(Exception):
    """The candidate used up its time in ``stage``."""

    def __init__(self, stage: Stage) -> None:
        super().__init__(stage.value)
        self.stage = stage


class ReferenceTimeout(Exception):
    """The reference took longer than ``limit_s``; the evaluator may never answer again."""

    def __init__(self, limit_s: float) -> None:
        super().__init__(f"{limit_s:g} s")
        self.limit_s = limit_s


class TimeLimits:
    """Whose time is running, and how much each side has used."""

    def __init__(
        self,
        limit_s: float,
        stopped_s: Callable[[], float] = lambda: 0.0,
        waited_s: Callable[[], float] | None = None,
    ) -> None:
        """The reference's time begins.

        Args:
            limit_s: of the candidate.
            stopped_s: seconds for which candidates have been stopped so far; they count for no one.
            waited_s: seconds for which the evaluator has waited for the device so far. Of the time that it
                reports as no one's only these are free; the rest is the reference's. None: all is free.
        """
        self._stopped_s = stopped_s
        self._stopped_before = stopped_s()
        self._waited_s = waited_s
        self._waited_before = waited_s() if waited_s is not None else 0.0
        reference_s = max(limit_s, _LEAST_REFERENCE_S)
        self._limits = {"candidate": limit_s, "tuning": limit_s, "reference": reference_s}
        self._spent = dict.fromkeys((*self._limits, "none"), 0.0)
        self.whose = "reference"
        self._since = time.monotonic()
        self.stage = Stage.LOAD
        self.stage_seconds: dict[str, float] = {}

    def switch(self, whose: str, stage: str) -> None:
        """Let the time of ``whose`` run from now on."""
        self._advance()
        self.whose = whose
        self.stage = Stage(stage) if stage else self.stage

    def forgive(self, seconds: float) -> None:
        """Count the last ``seconds`` for no one: this process was stopped."""
        self._since += seconds

    def remaining_s(self) -> float:
        """Return the seconds that are left of the time that runs.

        Raises:
            CandidateTimeout, ReferenceTimeout: none are.
        """
        self._advance()
        remaining = {name: limit - self._spent[name] for name, limit in self._limits.items()}
        if remaining["reference"] <= 0:
            raise ReferenceTimeout(self._limits["reference"])
        if self.whose == "none":
            return _NO_LIMIT_S
        if remaining[self.whose] <= 0:
            raise CandidateTimeout(self.stage)
        return remaining[self.whose]

    def _advance(self) -> None:
        now = time.monotonic()
        stopped = self._stopped_s()
        idle = stopped - self._stopped_before if self.whose in ("candidate", "tuning") else 0.0
        self._stopped_before = stopped
        self._spent[self.whose] += max(now - self._since - idle, 0.0)
        if self._waited_s is not None:
            waited_s = self._waited_s()
            if self.whose == "none":
                self._spent["reference"] += max(now - self._since - (waited_s - self._waited_before), 0.0)
            self._waited_before = waited_s
        name = {"none": "lock", "tuning": "tuning"}.get(self.whose, self.stage.value)
        self.stage_seconds[name] = self.stage_seconds.get(name, 0.0) + now - self._since
        self._since = now
