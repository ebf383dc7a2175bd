"""The Linux process calls that Python lacks: parent-death signals, subreapers, killing a whole tree."""

from __future__ import annotations

import contextlib
import ctypes
import os
import resource
import signal
import time
from collections.abc import Collection

_PR_SET_PDEATHSIG = 1
_PR_SET_NAME = 15
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38

_libc = ctypes.CDLL(None, use_errno=True)


def _prctl(option: int, argument: int | bytes) -> None:
    if _libc.prctl(option, argument, 0, 0, 0) != 0:
        code = ctypes.get_errno()
        raise OSError(code, f"prctl({option}): {os.strerror(code)}")


def set_process_name(name: str) -> None:
    """Name this process in ``ps`` and ``/proc/PID/comm`` (15 characters)."""
    _prctl(_PR_SET_NAME, name.encode()[:15] + b"\0")


def become_subreaper() -> None:
    """Adopt orphaned descendants, those that called setsid included."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def forbid_new_privileges() -> None:
    """Let no exec below this process gain privileges."""
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def die_with_parent(signum: signal.Signals, parent: int) -> None:
    """Receive ``signum`` when the parent dies; exit at once if ``parent`` is gone already."""
    _prctl(_PR_SET_PDEATHSIG, signum)
    if os.getppid() != parent:
        os._exit(1)


def process_tree() -> dict[int, list[int]]:
    """Children of every process, by process id (zombies included)."""
    tree: dict[int, list[int]] = {}
    for entry in os.listdir("/proc"):
        if not entry.isdigit():
            continue
        try:
            with open(f"/proc/{entry}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        tree.setdefault(int(fields[1]), []).append(int(entry))
    return tree


def descendants(root: int) -> list[int]:
    """Process ids below ``root``, parents before children."""
    tree = process_tree()
    found = list(tree.get(root, ()))
    for pid in found:
        found.extend(tree.get(pid, ()))
    return found


def kill_descendants() -> None:
    """Kill everything below this subreaper and return when nothing is left.

    All are stopped before any is killed, so that none can fork out of the way.
    """
    me = os.getpid()
    while True:
        stopped: set[int] = set()
        while fresh := [pid for pid in descendants(me) if pid not in stopped]:
            _signal_all(fresh, signal.SIGSTOP)
            stopped.update(fresh)
        _signal_all(stopped, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(0.002)


def _signal_all(pids: Collection[int], signum: signal.Signals) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signum)


def close_descriptors(keep: Collection[int]) -> None:
    """Close every descriptor above stderr but ``keep``."""
    for entry in os.listdir("/proc/self/fd"):
        fd = int(entry)
        if fd > 2 and fd not in keep:
            with contextlib.suppress(OSError):
                os.close(fd)


def address_space_bytes() -> int:
    """Virtual memory of this process."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[0]) * resource.getpagesize()


def limit(kind: int, value: int) -> None:
    """Lower the soft and hard limit ``kind`` to ``value``, or to the hard limit where that is lower."""
    _, hard = resource.getrlimit(kind)
    value = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (value, value))
