"""What a reference changed for everything that runs after it in the same process."""

from __future__ import annotations

from typing import Self

from online_judge.evaluation import audit, modules
from online_judge.evaluation.audit import Watchdog
from online_judge.evaluation.switches import GlobalFlags


class ProcessState:
    """Functions and switches of torch, Python and the judge as they were before any reference was loaded."""

    def __init__(self, watchdog: Watchdog, switches: GlobalFlags) -> None:
        self._watchdog = watchdog
        self._switches = switches

    @classmethod
    def take(cls) -> Self:
        """Remember the state of this process."""
        modules.apply_precision("paper")
        return cls(Watchdog.take(), GlobalFlags.take())

    def changes(self) -> list[str]:
        """Return what differs now, at most 20 lines; the last request's precision policy does not count."""
        modules.apply_precision("paper")
        return [*self._watchdog.changes(), *self._switches.changes()][: audit.MAX_NAMES]
