"""Control groups of version 1 and 2, if available: limits of a whole process tree."""

import contextlib
import itertools
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from online_judge.sandbox import mounts

_PREFIX = "adaexplore-candidate-"
_LIMIT_FILES = {
    "memory": {"v1": "memory.limit_in_bytes", "v2": "memory.max"},
    "pids": {"v1": "pids.max", "v2": "pids.max"},
}
_PATIENCE_S = 0.5


@dataclass(frozen=True)
class _Place:
    """The directory of a group, or one in which groups can be made."""

    version: Literal["v1", "v2"]
    path: Path

    def has(self, pid: int) -> bool:
        with contextlib.suppress(OSError):
            return str(pid) in (self.path / "cgroup.procs").read_text().split()
        return False


class Group:
    """The control group of one process, with a place for each controller; any of them may be missing."""

    def __init__(self, owner: int, memory_bytes: int, processes: int) -> None:
        self._places: dict[str, _Place] = {}
        limits = {"memory": memory_bytes, "pids": processes}
        for controller, parent in _parents().items():
            place = _Place(parent.version, parent.path / f"{_PREFIX}{owner}")
            try:
                place.path.mkdir(exist_ok=True)
                (place.path / _LIMIT_FILES[controller][place.version]).write_text(str(limits[controller]))
            except OSError:
                if place not in self._places.values():
                    _removed(place.path)
                continue
            self._places[controller] = place
            if controller == "memory" and place.version == "v2":
                for file, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
                    with contextlib.suppress(OSError):
                        (place.path / file).write_text(value)

    def take(self, pid: int) -> None:
        """Move a process into it; skip places that cannot be entered."""
        for place in set(self._places.values()):
            with contextlib.suppress(OSError):
                (place.path / "cgroup.procs").write_text(str(pid))

    def version(self, pid: int) -> str | None:
        return next((place.version for place in self._places.values() if place.has(pid)), None)

    def limit(self, controller: Literal["memory", "pids"], pid: int) -> int | None:
        """Return the limit of bytes or processes in force for ``pid``."""
        place = self._places.get(controller)
        if place is not None and place.has(pid):
            with contextlib.suppress(OSError, ValueError):
                return int((place.path / _LIMIT_FILES[controller][place.version]).read_text())
        return None

    @property
    def counts_tasks(self) -> bool:
        return "pids" in self._places

    def tasks(self) -> int | None:
        """Return how many processes and threads are in it; None if unknown."""
        if self.counts_tasks:
            with contextlib.suppress(OSError, ValueError):  # 0: no process could be moved into it
                return int((self._places["pids"].path / "pids.current").read_text()) or None
        return None

    def ran_out_of_memory(self) -> bool:
        """Return True if the kernel killed a process of it for lack of memory."""
        place = self._places.get("memory")
        if place is not None:
            file = place.path / ("memory.events" if place.version == "v2" else "memory.oom_control")
            with contextlib.suppress(OSError, ValueError):
                fields = dict(line.split() for line in file.read_text().splitlines())
                return int(fields.get("oom_kill", 0)) > 0
        return False

    def remove(self) -> None:
        deadline = time.monotonic() + _PATIENCE_S
        for place in set(self._places.values()):
            while not _removed(place.path) and time.monotonic() < deadline:
                time.sleep(0.002)


def sweep() -> None:
    """Remove the groups of dead supervisors."""
    for parent in {parent.path for parent in _parents().values()}:
        for path in parent.glob(f"{_PREFIX}*"):
            if not os.path.exists(f"/proc/{path.name.removeprefix(_PREFIX)}"):
                _removed(path)


def _parents() -> dict[str, _Place]:
    """Return where groups can be made, one place for each controller; a plain tmpfs does not count."""
    try:
        membership = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        mounted = mounts.table()
    except OSError:
        return {}
    found: dict[str, _Place] = {}
    for mount, (_, names, path) in itertools.product(mounted, membership):
        if mount.kind == "cgroup2" and not names:
            own = _below(mount.place, mount.root, path)
            for controller, parent in _v2_parents(own) if own is not None else ():
                found.setdefault(controller, _Place("v2", parent))
        elif mount.kind == "cgroup":
            for controller in _LIMIT_FILES.keys() & set(names.split(",")) & mount.file_system_options:
                own = _below(mount.place, mount.root, path)
                if own is not None and os.access(own, os.W_OK):
                    found.setdefault(controller, _Place("v1", own))
    return found


def _below(mount_point: str, root: str, path: str) -> Path | None:
    """Return the path of the group ``path`` below a mount of the group ``root``."""
    relative = os.path.relpath(path, root)
    place = Path(mount_point) if relative == "." else Path(mount_point) / relative
    return place if not relative.startswith("..") and place.is_dir() else None


def _v2_parents(own: Path) -> list[tuple[str, Path]]:
    """Return the own group if it may delegate, else its parent: processes live only in leaves."""
    found = []
    for controller in _LIMIT_FILES:
        for place in (own, own.parent):
            if not (place / "cgroup.procs").exists() or not os.access(place, os.W_OK):
                continue
            control = place / "cgroup.subtree_control"
            with contextlib.suppress(OSError):
                if place == own and controller not in control.read_text().split():
                    control.write_text(f"+{controller}")
                if controller in control.read_text().split():
                    found.append((controller, place))
                    break
    return found


def _removed(path: Path) -> bool:
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
