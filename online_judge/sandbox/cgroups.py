"""Control groups of version 1 and 2, where there really are some: limits of a whole process tree."""

from __future__ import annotations

import contextlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from online_judge.sandbox import mounts

_PREFIX = "adaexplore-player-"
_CONTROLLERS = ("memory", "pids")
_PATIENCE_S = 0.5


@dataclass(frozen=True)
class _Parent:
    """A directory in which groups with this controller can be made."""

    version: Literal["v1", "v2"]
    controller: str
    path: Path


class Group:
    """The control group of one process; every part of it may be missing."""

    def __init__(self, owner: int, memory_bytes: int, processes: int) -> None:
        self._parts: dict[str, tuple[str, Path]] = {}
        for parent in _parents():
            path = parent.path / f"{_PREFIX}{owner}"
            try:
                path.mkdir(exist_ok=True)
                _limit(parent, path, memory_bytes, processes)
            except OSError:
                if all(path != used for _, used in self._paths()):
                    _removed(path)
                continue
            self._parts[parent.controller] = (parent.version, path)

    def take(self, pid: int) -> None:
        """Move a process into it; a part that cannot be entered is left out."""
        for _, path in self._paths():
            with contextlib.suppress(OSError):
                (path / "cgroup.procs").write_text(str(pid))

    def version(self, pid: int) -> str | None:
        return next((version for version, path in self._paths() if _holds(path, pid)), None)

    def memory_bytes(self, pid: int) -> int | None:
        """Return the limit of memory that is in force for ``pid``."""
        return self._read("memory", {"v1": "memory.limit_in_bytes", "v2": "memory.max"}, pid)

    def processes(self, pid: int) -> int | None:
        return self._read("pids", {"v1": "pids.max", "v2": "pids.max"}, pid)

    @property
    def counts_tasks(self) -> bool:
        return "pids" in self._parts

    def tasks(self) -> int | None:
        """Return how many processes and threads are in it; None where that is not known."""
        _, path = self._parts.get("pids", ("", Path()))
        with contextlib.suppress(OSError, ValueError):
            return int((path / "pids.current").read_text()) or None  # 0: nothing could be moved into it
        return None

    def ran_out_of_memory(self) -> bool:
        """Whether the kernel killed a process of it for want of memory."""
        version, path = self._parts.get("memory", ("", Path()))
        if not version:
            return False
        file = "memory.events" if version == "v2" else "memory.oom_control"
        with contextlib.suppress(OSError, ValueError):
            fields = dict(line.split() for line in (path / file).read_text().splitlines())
            return int(fields.get("oom_kill", 0)) > 0
        return False

    def kill(self) -> None:
        """Kill all its processes where the kernel offers that (version 2)."""
        for version, path in self._paths():
            if version == "v2":
                with contextlib.suppress(OSError):
                    (path / "cgroup.kill").write_text("1")

    def remove(self) -> None:
        """Remove it once it is empty."""
        deadline = time.monotonic() + _PATIENCE_S
        for _, path in self._paths():
            while not _removed(path) and time.monotonic() < deadline:
                time.sleep(0.002)

    def _paths(self) -> set[tuple[str, Path]]:
        return set(self._parts.values())

    def _read(self, controller: str, files: dict[str, str], pid: int) -> int | None:
        version, path = self._parts.get(controller, ("", Path()))
        if not version or not _holds(path, pid):
            return None
        with contextlib.suppress(OSError, ValueError):
            return int((path / files[version]).read_text())
        return None


def sweep() -> None:
    """Remove the groups of dead supervisors."""
    for parent in {parent.path for parent in _parents()}:
        for path in parent.glob(f"{_PREFIX}*"):
            if not os.path.exists(f"/proc/{path.name.removeprefix(_PREFIX)}"):
                _removed(path)


def _limit(parent: _Parent, path: Path, memory_bytes: int, processes: int) -> None:
    if parent.controller == "pids":
        (path / "pids.max").write_text(str(processes))
    elif parent.version == "v1":
        (path / "memory.limit_in_bytes").write_text(str(memory_bytes))
    else:
        (path / "memory.max").write_text(str(memory_bytes))
        for file, value in (("memory.swap.max", "0"), ("memory.oom.group", "1")):
            with contextlib.suppress(OSError):
                (path / file).write_text(value)


def _parents() -> list[_Parent]:
    """Where groups can be made, one place a controller; a plain tmpfs is no such place."""
    try:
        membership = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
        mounted = mounts.table()
    except OSError:
        return []
    found: dict[str, _Parent] = {}
    for mount in mounted:
        for _, names, path in membership:
            if mount.kind == "cgroup2" and not names:
                place = _below(mount.place, mount.root, path)
                for controller, parent in _v2_parents(place) if place is not None else ():
                    found.setdefault(controller, _Parent("v2", controller, parent))
            elif mount.kind == "cgroup":
                for controller in set(_CONTROLLERS) & set(names.split(",")) & mount.file_system_options:
                    place = _below(mount.place, mount.root, path)
                    if place is not None and os.access(place, os.W_OK):
                        found.setdefault(controller, _Parent("v1", controller, place))
    return list(found.values())


def _below(mount_point: str, root: str, path: str) -> Path | None:
    """Where the group ``path`` lies, seen through a mount of the group ``root``."""
    relative = os.path.relpath(path, root)
    place = Path(mount_point) if relative == "." else Path(mount_point) / relative
    return place if not relative.startswith("..") and place.is_dir() else None


def _v2_parents(own: Path) -> list[tuple[str, Path]]:
    """Below the own group if it may delegate, else beside it: processes live in leaves only."""
    found = []
    for controller in _CONTROLLERS:
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


def _holds(path: Path, pid: int) -> bool:
    with contextlib.suppress(OSError):
        return str(pid) in (path / "cgroup.procs").read_text().split()
    return False


def _removed(path: Path) -> bool:
    try:
        path.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True
