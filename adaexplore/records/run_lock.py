"""The lock of a run's one writer, and writing under it."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from adaexplore.core.errors import StorageError
from adaexplore.core.files.atomic import locked, write_json, write_text
from adaexplore.core.files.json_lines import JsonLines
from adaexplore.records import layout


class RunLock:
    """The lock of the run in ``folder``; while it is held, nothing is written once the folder has moved.

    Without the check, a write would make the folder again, beside a run that may have started there since.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / layout.LOCK
        self._held: os.stat_result | None = None

    @contextlib.contextmanager
    def hold(self) -> Iterator[None]:
        """Lock the run for one writing process (advisory, ends with the process).

        Raises:
            UsageError: another process holds the lock.
            StorageError: the lock file cannot be created.
        """
        folder = self._path.parent
        busy = f"another process is writing to {folder}; wait for it or choose another save_path"
        with locked(self._path, "choose another save_path", busy):
            try:
                self._held = self._path.stat()
                yield
            finally:
                self._held = None

    def in_place(self) -> bool:
        """Return whether the folder's lock file is the held one; true if the lock is not held."""
        try:
            return self._held is None or os.path.samestat(self._held, self._path.stat())
        except OSError:
            return False

    def check(self) -> None:
        """Refuse to go on if the folder was moved or removed.

        Raises:
            StorageError: it was.
        """
        if not self.in_place():
            raise StorageError(
                f"the run's folder was moved or removed; {self._path} is gone or another run's. "
                "To continue, repeat the command with save_path set to the folder's new place"
            )

    def write_text(self, path: Path, text: str) -> None:
        self.check()
        write_text(path, text)

    def write_json(self, path: Path, data: Any) -> None:
        self.check()
        write_json(path, data)


class RunLines(JsonLines):
    """A JSON-lines file of a run, which is not written once the run's folder has moved."""

    def __init__(self, path: Path, lock: RunLock) -> None:
        super().__init__(path)
        self._run = lock

    def append(self, value: Any) -> None:
        self._run.check()
        super().append(value)
