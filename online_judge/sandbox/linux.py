"""The Linux process calls that Python lacks: parent-death signals, subreapers, killing a whole tree."""

import contextlib
import ctypes
import errno
import os
import resource
import signal
import time
from collections.abc import Collection
from pathlib import Path

_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NAME = 15
_PR_CAPBSET_DROP = 24
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_CAPABILITY_VERSION = 0x20080522

NEW_MOUNTS = 0x00020000
NEW_HOSTNAME = 0x04000000
NEW_IPC = 0x08000000
NEW_USER = 0x10000000
NEW_PIDS = 0x20000000
NEW_NETWORK = 0x40000000

MACHINES = ("x86_64", "aarch64")
"""Architectures with known system call numbers; :func:`number` picks one."""
KEYCTL = (250, 219)
_JOIN_SESSION_KEYRING = 1

_libc = ctypes.CDLL(None, use_errno=True)


def call(name: str, *arguments: object) -> int:
    """Call a function of the C library; raises OSError if it returns a negative number."""
    result = int(getattr(_libc, name)(*arguments))
    if result < 0:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result


def machine() -> str:
    """Return this machine's architecture; raises OSError if its system call numbers are unknown."""
    name = os.uname().machine
    if name not in MACHINES:
        raise OSError(errno.ENOSYS, f"no system call numbers for {name}")
    return name


def number(numbers: tuple[int, int]) -> int:
    """Return the one of ``numbers`` for this machine; raises as :func:`machine`."""
    return numbers[MACHINES.index(machine())]


def _prctl(option: int, argument: int | bytes) -> None:
    call("prctl", option, argument, 0, 0, 0)


def set_process_name(name: str) -> None:
    """Name this process in ``ps`` and ``/proc/PID/comm`` (15 characters)."""
    _prctl(_PR_SET_NAME, name.encode()[:15] + b"\0")


def process_name(pid: int) -> str:
    """Return the name of a process; empty if there is none."""
    try:
        return Path(f"/proc/{pid}/comm").read_text("utf-8", "replace").strip()
    except OSError:
        return ""


def is_running(pid: int) -> bool:
    """Return True if a process exists and is not a zombie."""
    return _state_and_parent(pid)[0] not in ("", "Z", "X")


def is_stopped(pid: int) -> bool:
    return _state_and_parent(pid)[0] == "T"


def _state_and_parent(pid: int) -> tuple[str, int]:
    """Return a process's state letter, empty if it is gone, and its parent."""
    try:
        state, parent = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[:2]
    except (OSError, ValueError):
        return "", 0
    return state.decode(), int(parent)


def become_subreaper() -> None:
    """Adopt orphaned descendants, including those that called setsid."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_inspection(*, forbid: bool = True) -> None:
    """Deny processes without privileges this one's memory, environment and descriptors.

    Inherited by forks; exec and a change of user undo it.
    """
    _prctl(_PR_SET_DUMPABLE, 0 if forbid else 1)


def unshare(flags: int) -> None:
    """Replace the namespaces that ``flags`` (``NEW_...``) name by new ones; raises OSError."""
    call("unshare", flags)


def join_new_keyring() -> None:
    """Replace the session's keyring by a new, empty one; raises OSError if that is impossible."""
    call("syscall", number(KEYCTL), _JOIN_SESSION_KEYRING, None)


def run_first(pid: int = 0) -> None:
    """If permitted, let a process, but not its forks, run before all ordinary ones."""
    with contextlib.suppress(OSError):
        os.sched_setscheduler(pid, os.SCHED_RR | os.SCHED_RESET_ON_FORK, os.sched_param(1))


def drop_privileges() -> None:
    """Give up all privileges, and let no exec below this process gain any."""
    with contextlib.suppress(OSError):  # not permitted, or past the last one
        for number in range(64):
            _prctl(_PR_CAPBSET_DROP, number)
    call("capset", (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0), (ctypes.c_uint32 * 6)())
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def die_with_parent(signum: signal.Signals, parent: int) -> None:
    """Have ``signum`` sent when the parent dies; exit at once if ``parent`` is already gone.

    A parent outside of this process's PID namespace has the number 0, gone or not.
    """
    _prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() not in (0, parent):
        os._exit(1)


def process_tree() -> dict[int, list[int]]:
    """Return the children of every process, zombies included."""
    tree: dict[int, list[int]] = {}
    for pid in [int(entry) for entry in os.listdir("/proc") if entry.isdigit()]:
        state, parent = _state_and_parent(pid)
        if state:
            tree.setdefault(parent, []).append(pid)
    return tree


def descendants(*roots: int) -> list[int]:
    """Return the process ids below ``roots``, without these; parents before children."""
    tree = process_tree()
    found = [pid for root in roots for pid in tree.get(root, ())]
    for pid in found:
        found.extend(tree.get(pid, ()))
    return found


def stop_below(roots: Collection[int]) -> set[int]:
    """Stop everything below ``roots``, new forks included; return the stopped process ids."""
    stopped: set[int] = set()
    while roots and (fresh := [pid for pid in descendants(*roots) if pid not in stopped]):
        _signal_all(fresh, signal.SIGSTOP)
        stopped.update(fresh)
    return stopped


def go_on(pids: Collection[int]) -> None:
    _signal_all(pids, signal.SIGCONT)


def children(pid: int) -> list[int]:
    """Return the process ids of the children of the main thread of ``pid``; empty if it is gone."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def kill_descendants() -> None:
    """Kill everything below this subreaper; return when nothing is left.

    All are stopped before any is killed, so that none can escape by a fork.
    """
    while True:
        _signal_all(stop_below([os.getpid()]), signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def reap_children() -> None:
    """Wait until this process has no child; used if the kernel kills them with their namespace."""
    with contextlib.suppress(ChildProcessError):
        while True:
            os.waitpid(-1, 0)


def _signal_all(pids: Collection[int], signum: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signum)


def close_descriptors(keep: Collection[int]) -> None:
    """Close every descriptor above stderr except ``keep``."""
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in keep:
            with contextlib.suppress(OSError):
                os.close(fd)


def address_space_bytes() -> int:
    return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()


def limit(kind: int, value: int) -> None:
    """Lower the soft and hard limit ``kind`` to ``value``, or to the hard limit if that is lower."""
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))
