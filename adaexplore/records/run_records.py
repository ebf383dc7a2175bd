"""A run's folder: its config, its environment, its tasks, and the lock that one writer holds."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Any

from adaexplore.core.errors import RecordError
from adaexplore.core.files import locked
from adaexplore.core.json_lines import JsonLines
from adaexplore.core.usage import Usage
from adaexplore.records import content, layout
from adaexplore.records.task_records import TaskRecords


class RunRecords:
    """The folder of one run, this project's or the release's."""

    def __init__(self, folder: Path) -> None:
        """Describe ``folder``, which need not exist yet."""
        self.folder = folder
        self._usage = JsonLines(folder / layout.USAGE)

    @classmethod
    def existing(cls, folder: Path) -> RunRecords:
        """The run in ``folder``, for readers.

        Raises:
            RecordError: there is none, or a newer version of this program wrote it.
        """
        if not folder.is_dir():
            raise RecordError(f"{folder} is no folder; give a run's save_path")
        if layout.holds_task_files(path.name for path in folder.iterdir()):
            raise RecordError(f"{folder} is one task's folder; give the run directory {folder.parent}")
        run = cls(folder)
        run.refuse_newer_format()
        if not run.tasks() and not (folder / layout.CONFIG).is_file():
            raise RecordError(f"{folder} holds no task of a run; give a run's save_path")
        return run

    def refuse_newer_format(self) -> None:
        """Refuse a run that a newer version of this program wrote.

        Raises:
            RecordError: it is one, or its ``environment.json`` is damaged.
        """
        version = self.environment().get("format", layout.FORMAT)
        if not isinstance(version, int) or version > layout.FORMAT:
            raise RecordError(
                f"{self.folder} has format {version}, this version reads up to {layout.FORMAT}; "
                "upgrade adaexplore"
            )

    def write_config(self, yaml: str) -> None:
        """Keep the resolved configuration."""
        content.write(self.folder / layout.CONFIG, yaml)

    def config(self) -> str | None:
        """The resolved configuration's text, None where there is none.

        Raises:
            RecordError: it cannot be read.
        """
        path = self.folder / layout.CONFIG
        return content.read(path) if path.is_file() else None

    def write_environment(self, info: Mapping[str, Any]) -> None:
        """Keep seed, versions and git revision; what differed before stays under ``earlier``, once.

        Raises:
            RecordError: the file that is there is damaged.
        """
        earlier: list[dict[str, Any]] = []
        previous = self.environment()
        if previous:
            earlier = [*previous.pop("earlier", []), previous]
        data = {"format": layout.FORMAT, **info}
        earlier = [each for i, each in enumerate(earlier) if each != data and each not in earlier[:i]]
        content.write_json(self.folder / layout.ENVIRONMENT, data | ({"earlier": earlier} if earlier else {}))

    def environment(self) -> dict[str, Any]:
        """What :meth:`write_environment` kept; empty for a run of the release.

        Raises:
            RecordError: the file is damaged.
        """
        path = self.folder / layout.ENVIRONMENT
        return content.read_object(path) if path.is_file() else {}

    def name(self) -> str:
        """What names the run wherever its folder is moved to; one without an id is named by its path.

        Raises:
            RecordError: ``environment.json`` is damaged.
        """
        return str(self.environment().get("id", self.folder.resolve()))

    def makers(self, key: str, steps: int) -> list[str]:
        """Who made the first ``steps`` steps of a task, one by one: ``<run's name>/<task's key>``.

        Raises:
            RecordError: a file is damaged.
        """
        return [*self._other_makers(key), *[f"{self.name()}/{key}"] * steps][:steps]

    def taken_over(self, key: str) -> int:
        """How many steps of a task were taken over from another run.

        Raises:
            RecordError: ``origins.json`` is damaged.
        """
        return len(self._other_makers(key))

    def _other_makers(self, key: str) -> list[str]:
        """Who made the steps of a task that were taken over, one by one."""
        path = self.folder / layout.ORIGINS
        origins = content.read_object(path) if path.is_file() else {}
        try:
            return [maker for maker, count in origins.get(key, {}).items() for _ in range(count)]
        except (AttributeError, TypeError) as error:
            raise RecordError(f"{path} is damaged: restore it, or start with another save_path") from error

    def write_makers(self, key: str, makers: Iterable[str]) -> None:
        """Keep who made the steps that a task takes over from another run, in their order.

        Raises:
            RecordError: the file that is there is damaged.
        """
        path = self.folder / layout.ORIGINS
        origins = content.read_object(path) if path.is_file() else {}
        content.write_json(path, origins | {key: Counter(makers)})

    def write_usage(self, request: str, usage: Usage) -> None:
        """Note what the reply to a request cost, as it comes: its step may never be recorded.

        Raises:
            StorageError: it cannot be written.
        """
        self._usage.append({"request": request, **asdict(usage)})

    def usage(self) -> list[tuple[str, Usage]]:
        """What :meth:`write_usage` noted in all sessions, by the requests' keys, in order.

        Raises:
            StorageError: it cannot be read.
        """
        return self._usage.read(_noted)

    def task(self, key: str, agent_type: str | None = None) -> TaskRecords:
        """The records of the task ``<level>_<problem_id>``.

        Args:
            key: the task's key.
            agent_type: whose files it holds; by default that is seen from the names in the folder.
        """
        folder = self.folder / key
        if agent_type is None:
            names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
            agent_type = layout.detect_agent(names) or layout.MCTS
        return TaskRecords(folder, agent_type)

    def tasks(self) -> list[str]:
        """The keys of the tasks that have a folder, ``2_2`` before ``2_10``."""
        if not self.folder.is_dir():
            return []
        keys = [
            path.name
            for path in self.folder.iterdir()
            if path.is_dir() and layout.is_task_folder(path.name, (entry.name for entry in path.iterdir()))
        ]
        return sorted(keys, key=layout.natural)

    def remove_empty(self, *logs: str) -> None:
        """Remove the folder if it holds nothing but the lock and ``logs``."""
        if self.folder.is_dir() and {path.name for path in self.folder.iterdir()} <= {layout.LOCK, *logs}:
            shutil.rmtree(self.folder)

    def is_written(self) -> bool:
        """Return whether a process of this machine holds the run; the lock itself is not touched."""
        try:
            inode = f":{(self.folder / layout.LOCK).stat().st_ino} "
            held = Path("/proc/locks").read_text().splitlines()
        except OSError:
            return False
        return any("FLOCK" in line and inode in line for line in held)

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold the run for one writing process (advisory, ends with the process).

        Raises:
            UsageError: another process holds it.
            StorageError: the lock file cannot be made.
        """
        busy = f"another process is writing to {self.folder}; wait for it or choose another save_path"
        with locked(self.folder / layout.LOCK, "choose another save_path", busy):
            yield


def _noted(line: dict[str, Any]) -> tuple[str, Usage]:
    request, usage = str(line.pop("request")), Usage(**line)
    return request, Usage() + usage  # raises a TypeError for what is no number
