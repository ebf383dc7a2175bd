"""A run's folder: its config, environment, tasks, and the lock of its one writer."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from adaexplore.core.environment import Environment
from adaexplore.core.errors import RecordError, UsageError
from adaexplore.core.usage import Usage
from adaexplore.records import content, layout
from adaexplore.records.run_lock import RunLines, RunLock
from adaexplore.records.task_records import TaskRecords
from adaexplore.settings.yaml_text import YamlProblem, parse_mapping

_ENVIRONMENT = TypeAdapter(Environment)
_KEYS = TypeAdapter(list[str])


class RunRecords:
    """The folder of one run of this project or of the release.

    Methods that read raise RecordError if a file is damaged; methods that write raise StorageError.
    """

    def __init__(self, folder: Path) -> None:
        """Describe ``folder``, which need not exist yet; ``replies`` is the file with each reply's cost."""
        self.folder = folder
        self._lock = RunLock(folder)
        self.replies = RunLines(folder / layout.USAGE, self._lock)
        self.mailbox = folder / layout.MAILBOX

    @classmethod
    def existing(cls, folder: Path) -> RunRecords:
        """Open the run in ``folder`` for reading.

        Raises:
            RecordError: there is none, or a newer version of this program wrote it.
        """
        if not folder.is_dir():
            hint = "; packed traces are for adaexplore view" if folder.suffix == ".json" else ""
            raise RecordError(f"{folder} is not a folder; give a run's save_path{hint}")
        if layout.holds_task_files(path.name for path in folder.iterdir()):
            raise RecordError(f"{folder} is one task's folder; give the run directory {folder.parent}")
        run = cls(folder)
        run.refuse_newer_format()
        if not run.tasks() and not (folder / layout.CONFIG).is_file():
            hint = "; packed traces are for adaexplore view" if any(folder.glob("*.json")) else ""
            raise RecordError(f"{folder} holds no task of a run; give a run's save_path{hint}")
        return run

    def refuse_newer_format(self) -> None:
        """Refuse a run that a newer version of this program wrote.

        Raises:
            RecordError: the run is newer, or its ``environment.json`` is damaged.
        """
        version = self.environment().get("format", layout.FORMAT)
        if not isinstance(version, int) or version > layout.FORMAT:
            raise RecordError(
                f"{self.folder} has format {version}, this version reads up to {layout.FORMAT}; "
                "upgrade adaexplore"
            )

    def refuse_inside_another(self) -> None:
        """Refuse to write a run into a task's folder or below another run's folder.

        Raises:
            UsageError: ``folder`` is such a place.
        """
        if (self.folder / layout.LOCK).is_file() and (self.folder / layout.CONFIG).is_file():
            return  # it is a run already
        folder = Path(os.path.realpath(self.folder))  # accepts a loop of links
        for other in folder.parents:
            if _is_written_run(other):
                raise UsageError(f"{self.folder} is inside the run {other}; choose a directory outside of it")
        if folder.is_dir() and layout.holds_task_files(path.name for path in folder.iterdir()):
            raise UsageError(f"{self.folder} is one task's folder of another run; choose another directory")

    def write_config(self, yaml: str) -> None:
        self._lock.write_text(self.folder / layout.CONFIG, yaml)

    def config(self) -> str | None:
        """Return the text of the resolved configuration; None without one."""
        path = self.folder / layout.CONFIG
        return content.read(path) if path.is_file() else None

    def settings(self) -> dict[str, Any]:
        """Return the recorded keys and values of the resolved configuration; empty without one."""
        try:
            return parse_mapping(self.config() or "")[0]
        except YamlProblem as problem:
            path = self.folder / layout.CONFIG
            raise content.damaged(path, str(problem)) from problem

    def write_environment(self, info: Mapping[str, Any]) -> None:
        """Write seed, versions and git revision; earlier values that differ stay under ``earlier``, once."""
        earlier: list[dict[str, Any]] = []
        previous = self.environment()
        if previous:
            earlier = [*previous.pop("earlier", []), previous]
        data = {"format": layout.FORMAT, **info}
        earlier = [each for i, each in enumerate(earlier) if each != data and each not in earlier[:i]]
        self._lock.write_json(
            self.folder / layout.ENVIRONMENT, data | ({"earlier": earlier} if earlier else {})
        )

    def environment(self) -> dict[str, Any]:
        """Return what :meth:`write_environment` wrote; empty for a run of the release."""
        return content.read_object(self.folder / layout.ENVIRONMENT, missing={})

    def write_judge_environment(self, environment: Environment) -> None:
        """Write the judge's environment facts, which prompts state."""
        self._lock.write_json(self.folder / layout.JUDGE_ENVIRONMENT, environment.model_dump(mode="json"))

    def judge_environment(self) -> Environment | None:
        return content.read_as(self.folder / layout.JUDGE_ENVIRONMENT, _ENVIRONMENT)

    def name(self) -> str:
        """Return the run's id, which stays when its folder moves; without an id, its path."""
        return str(self.environment().get("id", self.folder.resolve()))

    def makers(self, key: str, steps: int) -> list[str]:
        """Return the origin of each of the first ``steps`` steps of a task: ``<run's name>/<task's key>``."""
        return [*self._other_makers(key), *[f"{self.name()}/{key}"] * steps][:steps]

    def taken_over(self, key: str) -> int:
        """Return how many steps of a task were copied from another run."""
        return len(self._other_makers(key))

    def _other_makers(self, key: str) -> list[str]:
        """Return the origin of each copied step of a task."""
        path = self.folder / layout.ORIGINS
        origins = content.read_object(path, missing={})
        try:
            return [maker for maker, count in origins.get(key, {}).items() for _ in range(count)]
        except (AttributeError, TypeError) as error:
            raise RecordError(f"{path} is damaged: restore it, or start with another save_path") from error

    def write_makers(self, key: str, makers: Iterable[str]) -> None:
        """Write the origin of each step that a task copies from another run, in order."""
        path = self.folder / layout.ORIGINS
        origins = content.read_object(path, missing={})
        self._lock.write_json(path, origins | {key: Counter(makers)})

    def usage(self) -> list[tuple[str, Usage]]:
        """Return the cost of all sessions' replies by request key, in order: see ``replies``."""
        return self.replies.read(_noted)

    def task(self, key: str, agent_type: str | None = None) -> TaskRecords:
        """Return the records of a task; by default, its agent is detected from the file names."""
        folder = self.folder / key
        if agent_type is None:
            names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
            agent_type = layout.detect_agent(names) or layout.MCTS
        return TaskRecords(folder, agent_type, self._lock)

    def tasks(self) -> list[str]:
        """Return the keys of the tasks that have a folder, ``2_2`` before ``2_10``."""
        if not self.folder.is_dir():
            return []
        keys = [
            path.name
            for path in self.folder.iterdir()
            if path.is_dir() and layout.is_task_folder(path.name, (entry.name for entry in path.iterdir()))
        ]
        return sorted(keys, key=layout.natural)

    def planned(self, *more: str) -> list[str]:
        """Return the keys that sessions of the run were given, ``more``, and those with a folder, in order.

        A run of the release, or of an earlier version, has only those with a folder.
        """
        path = self.folder / layout.ENVIRONMENT
        try:
            given = _KEYS.validate_python(self.environment().get("tasks", []))
        except ValidationError as error:
            raise content.damaged(path, f"tasks: {content.reason(error)}") from error
        return sorted({*given, *more, *self.tasks()}, key=layout.natural)

    def remove_empty(self, *logs: str) -> None:
        """Remove the folder if it holds nothing but the lock and ``logs``, and was not moved meanwhile."""
        if (
            self.folder.is_dir()
            and self._lock.in_place()
            and {path.name for path in self.folder.iterdir()} <= {layout.LOCK, *logs}
        ):
            shutil.rmtree(self.folder)

    def is_written(self) -> bool:
        """Return whether a process on this machine holds the lock; the lock itself is not touched."""
        try:
            inode = f":{(self.folder / layout.LOCK).stat().st_ino} "
            held = Path("/proc/locks").read_text().splitlines()
        except OSError:
            return False
        return any("FLOCK" in line and inode in line for line in held)

    def lock(self) -> AbstractContextManager[None]:
        """Lock the run for one writing process (advisory, ends with the process).

        Raises:
            UsageError: another process holds the lock.
        """
        return self._lock.hold()


def _is_written_run(folder: Path) -> bool:
    """Return whether ``folder`` is a run's; a ``config.yaml`` alone may be a user's own."""
    if not (folder / layout.CONFIG).is_file():
        return False
    try:
        written = content.read_object(folder / layout.ENVIRONMENT, missing={})
    except RecordError:
        written = {}
    return (folder / layout.LOCK).is_file() or isinstance(written.get("format"), int)


def _noted(line: dict[str, Any]) -> tuple[str, Usage]:
    request, usage = str(line.pop("request")), Usage(**line)
    return request, Usage() + usage  # raises a TypeError unless it is a number
