"""Requests of a user to a running run, from another terminal."""

from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path

from pydantic import TypeAdapter

from adaexplore.core.files.json_lines import JsonLines
from adaexplore.records import layout


class Action(StrEnum):
    PIN = "pin"  # the next step of a task edits this node
    NOTE = "note"  # text at the end of all further prompts
    BAN = "ban"  # the search ignores a node and all below it from now on
    PAUSE = "pause"  # start no further step; those in flight are finished
    RESUME = "resume"  # start steps again
    STOP = "stop"  # end the run after the steps in flight


@dataclass(frozen=True)
class SteeringEvent:
    """One request; ``time`` is in ISO 8601, UTC.

    ``task`` is "" for all tasks, ``node`` belongs to a pin or a ban, ``text`` to a note; an empty note
    removes an earlier one.
    """

    action: Action
    time: str
    task: str = ""
    node: int = 0
    text: str = ""

    @property
    def words(self) -> str:
        what = {
            Action.PIN: f" step {self.node}",
            Action.BAN: f" step {self.node}",
            Action.NOTE: f" {self.text!r}",
        }.get(self.action, "")
        return f"{self.time}: {self.action.value}{what}" + (f" of {self.task}" if self.task else "")


_EVENT = TypeAdapter(SteeringEvent)


@dataclass(frozen=True)
class Steered:
    """Requests that apply to one step: the node that it edits, its note, the banned nodes."""

    pinned: int | None = None
    note: str = ""
    banned: tuple[int, ...] = ()


class Steering:
    """The events of a run's folder; a session follows those added after its start.

    Methods raise StorageError if the file cannot be read or written.
    """

    def __init__(self, folder: Path) -> None:
        self._lines = JsonLines(folder / layout.STEERING)
        self._size = -1
        self._events: list[SteeringEvent] = []
        self._before = len(self.events())

    def add(self, action: Action, task: str = "", node: int = 0, text: str = "") -> None:
        time = datetime.now(UTC).isoformat(timespec="seconds")
        self._lines.append(asdict(SteeringEvent(action, time, task, node, text)))

    def events(self) -> list[SteeringEvent]:
        """Return all events, including those of earlier sessions."""
        path = self._lines.path
        size = path.stat().st_size if path.exists() else 0
        if size != self._size:
            self._events = self._lines.read(_EVENT.validate_python)
            self._size = size
        return self._events

    def paused(self) -> bool:
        asked = [event.action for event in self._asked() if event.action in (Action.PAUSE, Action.RESUME)]
        return bool(asked) and asked[-1] is Action.PAUSE

    def stopped(self) -> bool:
        return any(event.action is Action.STOP for event in self._asked())

    def pins(self, task: str) -> list[int]:
        """Return the pinned nodes of a task, in the order of the requests."""
        return [event.node for event in self._asked() if event.action is Action.PIN and event.task == task]

    def bans(self, task: str) -> tuple[int, ...]:
        """Return the banned nodes of a task, from all sessions."""
        found = {event.node for event in self.events() if event.action is Action.BAN and event.task == task}
        return tuple(sorted(found))

    def note(self, task: str) -> str:
        """Return the note at the end of a task's prompts; "" for none."""
        notes = [event for event in self._asked() if event.action is Action.NOTE and event.task in ("", task)]
        return notes[-1].text if notes else ""

    def _asked(self) -> list[SteeringEvent]:
        return self.events()[self._before :]
