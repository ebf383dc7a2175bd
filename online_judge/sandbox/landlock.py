"""Landlock: a process without privileges gives up files, TCP and signals for itself and its children."""

import os
import stat
import struct
from collections.abc import Iterable

from online_judge.sandbox import linux

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION_QUESTION = 1
_PATH_BENEATH = 1

_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_READ = _EXECUTE | _READ_FILE | _READ_DIR
_ON_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE | _IOCTL
_KNOWN_SINCE = ((1, (1 << 13) - 1), (2, 1 << 13), (3, _TRUNCATE), (5, _IOCTL))
_TCP, TCP_SINCE = 0b11, 4
_SIGNALS_AND_SOCKETS, _SCOPES_SINCE = 0b11, 6


def version() -> int:
    """Return the kernel's Landlock version; 0 if there is none."""
    try:
        return linux.call("syscall", _CREATE_RULESET, None, 0, _VERSION_QUESTION)
    except OSError:
        return 0


def restrict(readable: Iterable[str], writable: Iterable[str]) -> None:
    """Restrict this process to these paths and everything below; no TCP, no signals to processes outside.

    Skips paths that do not exist; raises OSError without Landlock. Needs
    :func:`online_judge.sandbox.linux.drop_privileges` first.
    """
    known = version()
    handled = sum(rights for since, rights in _KNOWN_SINCE if known >= since)
    scopes = _SIGNALS_AND_SOCKETS if known >= _SCOPES_SINCE else 0
    attributes = struct.pack("QQQ", handled, _TCP if known >= TCP_SINCE else 0, scopes)
    ruleset = linux.call("syscall", _CREATE_RULESET, attributes, len(attributes), 0)
    try:
        for path in readable:
            _allow(ruleset, path, handled & _READ)
        for path in writable:
            _allow(ruleset, path, handled)
        linux.call("syscall", _RESTRICT_SELF, ruleset, 0)
    finally:
        os.close(ruleset)


def _allow(ruleset: int, path: str, rights: int) -> None:
    try:
        fd = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        if not stat.S_ISDIR(os.fstat(fd).st_mode):
            rights &= _ON_FILES
        linux.call("syscall", _ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, fd), 0)
    finally:
        os.close(fd)
