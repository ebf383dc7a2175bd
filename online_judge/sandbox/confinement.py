"""The sandbox around a process, in layers, which the process enters before it does anything else.

Layers that the machine does not permit are skipped; :mod:`online_judge.sandbox.read_back` finds those in
force.
"""

import contextlib
import os
import resource
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from online_judge.sandbox import landlock, linux, mounts, seccomp
from online_judge.sandbox.cgroups import Group

_FIRST_UID: Final = 0x60000000


Layer = Literal["network", "pids", "ipc", "mounts", "uid", "landlock", "cgroup", "seccomp"]
"""The layers are independent of each other."""


@dataclass(frozen=True)
class Limits:
    memory_bytes: int  # of all its processes together, its folder included
    processes: int = 1024  # at the same time, threads included
    file_bytes: int = 2**30  # of one file
    disk_bytes: int = 2 * 2**30  # of its folder
    open_files: int = 4096  # descriptors of one process
    address_bytes: int | None = None  # address space of a process beyond that at its start


CPU_LIMITS: Final = Limits(memory_bytes=10 * 2**30, address_bytes=8 * 2**30)
CUDA_LIMITS: Final = Limits(memory_bytes=48 * 2**30)  # CUDA reserves much more address space than it uses


@dataclass(frozen=True)
class Wanted:
    """The sandbox of a process, as it would be on a machine that permits everything."""

    view: mounts.FileView
    limits: Limits
    without: frozenset[Layer] = frozenset()  # layers that are not tried


@dataclass(frozen=True)
class Plan:
    wanted: Wanted  # the wanted sandbox
    group: Group | None
    uid: int | None  # its user id; None: it stays the judge's
    user_namespace: bool
    own_pids: bool  # whether children of this process are in a process namespace of their own


@dataclass(frozen=True)
class Entered:
    """A process's own report about its sandbox."""

    landlocked: bool  # the kernel took its Landlock rules
    unseen: bool  # by its user's other processes; else it forbids inspection after the read-back


def prepare(wanted: Wanted) -> Plan:
    """Prepare in the supervisor; if permitted, give its children a process namespace.

    Without privileges all layers are inside a user namespace, if permitted.
    """
    limits, without = wanted.limits, wanted.without
    group = None if "cgroup" in without else Group(os.getpid(), limits.memory_bytes, limits.processes)
    pids = 0 if "pids" in without else linux.NEW_PIDS
    try:
        linux.unshare(pids or linux.NEW_HOSTNAME)
    except OSError:
        try:
            _enter_user_namespace(pids)
        except OSError:
            return Plan(wanted, group, None, user_namespace=False, own_pids=False)
        return Plan(wanted, group, None, user_namespace=True, own_pids=bool(pids))
    uid = None if "uid" in without else _own_uid()
    return Plan(wanted, group, uid, user_namespace=False, own_pids=bool(pids))


def enter(plan: Plan) -> Entered:
    """Enter all layers, and give up all privileges."""
    without = plan.wanted.without
    for layer, flag in (("network", linux.NEW_NETWORK), ("ipc", linux.NEW_IPC)):
        if layer not in without:
            with contextlib.suppress(OSError):
                linux.unshare(flag)
    moved = "mounts" not in without and _move_in(plan)
    if moved and plan.uid is not None:
        os.setgroups([])
        os.setresgid(plan.uid, plan.uid, plan.uid)
        os.setresuid(plan.uid, plan.uid, plan.uid)
    linux.drop_privileges()
    linux.forbid_inspection(forbid=False)
    _limit(plan.wanted.limits, own_user=plan.user_namespace or os.getuid() == plan.uid)
    landlocked = "landlock" not in without and _lock(plan.wanted.view, moved=moved)
    with contextlib.suppress(OSError):
        linux.join_new_keyring()
    if "seccomp" not in without:  # last, because it refuses calls that earlier steps need
        with contextlib.suppress(OSError):
            seccomp.install()
    return Entered(landlocked=landlocked, unseen=moved or os.getuid() == plan.uid)


def _move_in(plan: Plan) -> bool:
    uid, gid = (os.getuid(), os.getgid()) if plan.uid is None else (plan.uid, plan.uid)
    with contextlib.suppress(OSError):
        linux.unshare(linux.NEW_MOUNTS)
        mounts.move_in(plan.wanted.view, uid, gid, plan.wanted.limits.disk_bytes)
        return True
    return False


def _lock(view: mounts.FileView, *, moved: bool) -> bool:
    writable = (view.folder, *view.writable, *view.devices, "/proc")
    with contextlib.suppress(OSError):
        if moved:
            landlock.restrict(("/",), (*writable, mounts.TEMPORARY, mounts.SHARED_MEMORY))
        else:
            landlock.restrict((*view.visible, "/etc/passwd", "/etc/group"), writable)
        return True
    return False


def _limit(limits: Limits, *, own_user: bool) -> None:
    linux.limit(resource.RLIMIT_CORE, 0)
    linux.limit(resource.RLIMIT_FSIZE, limits.file_bytes)
    linux.limit(resource.RLIMIT_NOFILE, limits.open_files)
    if own_user:  # it counts all processes of a user; in a user namespace only those there
        linux.limit(resource.RLIMIT_NPROC, limits.processes)
    if limits.address_bytes is not None:
        linux.limit(resource.RLIMIT_AS, linux.address_space_bytes() + limits.address_bytes)


def _own_uid() -> int | None:
    """Return a user id that is unique while this process lives; None without the right to change it."""
    if os.getuid() != 0:
        return None
    with contextlib.suppress(OSError, ValueError):
        for line in Path("/proc/self/uid_map").read_text().splitlines():
            inside, _, count = map(int, line.split())
            first = max(inside, min(_FIRST_UID, inside + count // 2))
            span = min(inside + count - first, 2**22)
            if span > 2**14:
                return first + os.getpid() % span
    return None


def _enter_user_namespace(pids: int) -> None:
    uid, gid = os.getuid(), os.getgid()
    linux.forbid_inspection(forbid=False)  # else the maps belong to root
    try:
        linux.unshare(linux.NEW_USER | pids)
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{uid} {uid} 1")
        Path("/proc/self/gid_map").write_text(f"{gid} {gid} 1")
    finally:
        linux.forbid_inspection()
