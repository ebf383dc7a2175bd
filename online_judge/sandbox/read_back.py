"""Read back from the kernel, in the supervisor, which parts of a process's sandbox are in force.

The report is a flat JSON object that every verdict carries; ``docs/integrity.md`` explains its keys. False or
null means not in force.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from online_judge.sandbox import landlock, mounts
from online_judge.sandbox.confinement import Plan

Level = Literal["none", "namespaces", "full"]
LEVELS: Final[tuple[Level, ...]] = ("none", "namespaces", "full")
"""From the weakest to the strongest."""

_UNLIMITED: Final = 2**60


def read_back(plan: Plan, pid: int, *, landlocked: bool) -> dict[str, object]:
    """Return the parts in force around the process ``pid``, read from the kernel.

    ``landlocked`` is the process's own report from before it runs candidate code: the kernel does not show
    it.
    """
    status = _status(pid)
    limits = _limits(pid)
    group = plan.group
    own_network = _namespace(pid, "net") and _interfaces(pid) <= {"lo"}
    moved = _namespace(pid, "mnt") and _is_moved_in(plan, pid)
    memory = group.limit("memory", pid) if group is not None else None
    address = limits.get("Max address space")
    in_group = group.limit("pids", pid) if group is not None else None
    version = landlock.version() if landlocked else 0
    uid = int(status["Uid"].split()[0])
    own_user = plan.user_namespace or uid == plan.uid
    report: dict[str, object] = {
        "network": own_network or ("no tcp" if version >= landlock.TCP_SINCE else False),
        "pids": len(status["NSpid"].split()) > len(_status(os.getpid())["NSpid"].split()),
        "hidden": moved and _hides_processes(pid),
        "ipc": _namespace(pid, "ipc"),
        "filesystem": "mount" if moved else "landlock" if landlocked else False,
        "landlock": version or False,
        "uid": uid if uid == plan.uid else None,
        "cgroup": (group.version(pid) if group is not None else None) or False,
        "no_new_privileges": status.get("NoNewPrivs") == "1",
        "seccomp": _is_filtered(status),
        "no_capabilities": not any(int(status[f"Cap{kind}"], 16) for kind in ("Inh", "Prm", "Eff", "Amb")),
        "memory_bytes": memory or address,
        "memory_of": "tree" if memory else "process" if address else None,
        "disk_bytes": _disk_bytes(plan, pid) if moved else None,
        "file_bytes": limits.get("Max file size"),
        "processes": in_group or (limits.get("Max processes") if own_user else None),
        "open_files": limits.get("Max open files"),
    }
    return report | {"level": level(report)}


_WEAK: Final[Mapping[str, str]] = {
    "network": "the network can be reached",
    "pids": "no process namespace",
    "hidden": "other processes are visible",
    "ipc": "no IPC namespace",
    "filesystem": "the file system is open",
    "landlock": "no Landlock",
    "uid": "the judge's own user",
    "cgroup": "no cgroup",
    "no_new_privileges": "programs may gain privileges",
    "no_capabilities": "it keeps privileges",
    "seccomp": "no system call filter",
    "memory_bytes": "no memory limit",
    "disk_bytes": "no disk limit",
    "file_bytes": "no file size limit",
    "processes": "no process limit",
    "open_files": "no limit of open files",
}


def weaknesses(report: Mapping[str, object]) -> tuple[str, ...]:
    weak = [words for key, words in _WEAK.items() if report.get(key) in (None, False)]
    if report.get("network") == "no tcp":
        weak.append("network other than TCP can be reached")
    return tuple(weak)


def level(report: Mapping[str, object]) -> Level:
    """Return its level in one word.

    ``full``: nothing is missing; ``namespaces``: no network, no processes and no files but its own, and no
    way to more privileges; else ``none``.
    """
    if report and not weaknesses(report):
        return "full"
    layers = (report.get("network") is True, report.get("pids"), report.get("filesystem") == "mount")
    return "namespaces" if all(layers) and report.get("no_new_privileges") else "none"


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _is_filtered(status: Mapping[str, str]) -> bool:
    """Return True if a process has more filters than this process, which a container may filter too."""
    own = _status(os.getpid())
    filters = [int(each.get("Seccomp_filters", each.get("Seccomp", "0"))) for each in (own, status)]
    return status.get("Seccomp") == "2" and filters[0] < filters[1]


def _limits(pid: int) -> dict[str, int]:
    found = {}
    for line in Path(f"/proc/{pid}/limits").read_text().splitlines()[1:]:
        name, soft = line[:25].strip(), line[25:46].strip()
        if soft.isdigit() and int(soft) < _UNLIMITED:
            found[name] = int(soft)
    return found


def _namespace(pid: int, kind: str) -> bool:
    """Return True if ``pid`` has a different namespace of this kind than this process."""
    try:
        return os.readlink(f"/proc/{pid}/ns/{kind}") != os.readlink(f"/proc/self/ns/{kind}")
    except OSError:
        return False


def _interfaces(pid: int) -> set[str]:
    lines = Path(f"/proc/{pid}/net/dev").read_text().splitlines()[2:]
    return {line.partition(":")[0].strip() for line in lines}


def _is_moved_in(plan: Plan, pid: int) -> bool:
    """Return True if the repository is hidden and only the process's own folders are writable."""
    view = plan.wanted.view
    own = {view.folder, mounts.TEMPORARY, mounts.SHARED_MEMORY, "/proc", *view.writable}
    for each in mounts.table(pid):
        if "rw" in each.options and each.place not in own and not each.place.startswith("/proc/"):
            return False
    return not os.path.lexists(f"/proc/{pid}/root{__file__}") or mounts.REPOSITORY not in view.hidden


def _hides_processes(pid: int) -> bool:
    proc = [each.file_system_options for each in mounts.table(pid) if each.place == "/proc"]
    return any(not options.isdisjoint({"hidepid=invisible", "hidepid=2"}) for options in proc)


def _disk_bytes(plan: Plan, pid: int) -> int | None:
    own = (plan.wanted.view.folder, mounts.TEMPORARY, mounts.SHARED_MEMORY)
    try:
        sizes = [os.statvfs(f"/proc/{pid}/root{path}") for path in own]
    except OSError:
        return None
    return sum(size.f_blocks * size.f_frsize for size in sizes)
