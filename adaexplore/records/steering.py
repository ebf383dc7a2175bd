"""What a person asked of a running run, from another terminal."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import Any

from adaexplore.core.json_lines import JsonLines
from adaexplore.records import layout


class Action(StrEnum):
    """What can be asked for."""

    PAUSE = "pause"  # begin no further step; those in flight are finished
    RESUME = "resume"  # begin steps again
    STOP = "stop"  # end the run after the steps in flight


@dataclass(frozen=True)
class SteeringEvent:
    """One request; ``time`` is in ISO 8601, UTC."""

    action: Action
    time: str


class Steering:
    """The events of a run's folder; a session obeys those that came after its start."""

    def __init__(self, folder: Path) -> None:
        """Describe the events of ``folder``; none need be there."""
        self._lines = JsonLines(folder / layout.STEERING)
        self._size = -1
        self._events: list[SteeringEvent] = []
        self._before = len(self.events())

    def add(self, action: Action) -> None:
        """Ask for ``action`` now.

        Raises:
            StorageError: it cannot be written.
        """
        time = datetime.now(UTC).isoformat(timespec="seconds")
        self._lines.append(asdict(SteeringEvent(action, time)))

    def events(self) -> list[SteeringEvent]:
        """Return all events, those of earlier sessions included.

        Raises:
            StorageError: they cannot be read.
        """
        path = self._lines.path
        size = path.stat().st_size if path.exists() else 0
        if size != self._size:
            self._events = self._lines.read(_event)
            self._size = size
        return self._events

    def paused(self) -> bool:
        """Return whether no further step may begin for now."""
        asked = self._asked()
        return bool(asked) and asked[-1] is Action.PAUSE

    def stopped(self) -> bool:
        """Return whether the run is to end."""
        return Action.STOP in self._asked()

    def _asked(self) -> list[Action]:
        return [event.action for event in self.events()[self._before :]]


def _event(data: Any) -> SteeringEvent:
    return SteeringEvent(Action(data["action"]), str(data["time"])[:40])
