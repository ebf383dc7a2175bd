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

    PIN = "pin"  # the next step of a task edits a node
    NOTE = "note"  # what prompts say at their end from now on
    BAN = "ban"  # a node and all below it are left out of the search for good
    PAUSE = "pause"  # begin no further step; those in flight are finished
    RESUME = "resume"  # begin steps again
    STOP = "stop"  # end the run after the steps in flight


@dataclass(frozen=True)
class SteeringEvent:
    """One request; ``time`` is in ISO 8601, UTC.

    ``task`` is "" where all are meant, ``node`` that of a pin or a ban, ``text`` that of a note; an empty
    note ends an earlier one.
    """

    action: Action
    time: str
    task: str = ""
    node: int = 0
    text: str = ""

    @property
    def words(self) -> str:
        """Return the event in one line."""
        what = {
            Action.PIN: f" step {self.node}",
            Action.BAN: f" step {self.node}",
            Action.NOTE: f" {self.text!r}",
        }.get(self.action, "")
        return f"{self.time}: {self.action.value}{what}" + (f" of {self.task}" if self.task else "")


class Steering:
    """The events of a run's folder; a session obeys those that came after its start."""

    def __init__(self, folder: Path) -> None:
        """Describe the events of ``folder``; none need be there."""
        self._lines = JsonLines(folder / layout.STEERING)
        self._size = -1
        self._events: list[SteeringEvent] = []
        self._before = len(self.events())

    def add(self, action: Action, task: str = "", node: int = 0, text: str = "") -> None:
        """Ask for ``action`` now.

        Raises:
            StorageError: it cannot be written.
        """
        time = datetime.now(UTC).isoformat(timespec="seconds")
        self._lines.append(asdict(SteeringEvent(action, time, task, node, text)))

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
        asked = [event.action for event in self._asked() if event.action in (Action.PAUSE, Action.RESUME)]
        return bool(asked) and asked[-1] is Action.PAUSE

    def stopped(self) -> bool:
        """Return whether the run is to end."""
        return any(event.action is Action.STOP for event in self._asked())

    def pins(self, task: str) -> list[int]:
        """Return the nodes of a task that were pinned, the first one first."""
        return [event.node for event in self._asked() if event.action is Action.PIN and event.task == task]

    def bans(self, task: str) -> tuple[int, ...]:
        """Return the nodes of a task that were banned, in whichever session."""
        found = {event.node for event in self.events() if event.action is Action.BAN and event.task == task}
        return tuple(sorted(found))

    def note(self, task: str) -> str:
        """Return what a task's prompts are to say at their end; "" for nothing."""
        notes = [event for event in self._asked() if event.action is Action.NOTE and event.task in ("", task)]
        return notes[-1].text if notes else ""

    def _asked(self) -> list[SteeringEvent]:
        return self.events()[self._before :]


def _event(data: Any) -> SteeringEvent:
    time, task, node = str(data["time"])[:40], str(data.get("task", ""))[:200], int(data.get("node", 0))
    return SteeringEvent(Action(data["action"]), time, task, node, str(data.get("text", "")))
