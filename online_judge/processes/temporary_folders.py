"""A judge's temporary folder, and those that killed judges have left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

LOCK = ".adaexplore-judge.lock"


def make() -> tuple[Path, int]:
    """A new folder, and the descriptor of its lock: the judge lives as long as any process has it open.

    The folder's name tells a candidate nothing. The descriptor is to be closed in every process but the
    gateway and the fork server.
    """
    home = Path(tempfile.mkdtemp()).resolve()  # as a candidate's getcwd() says it
    unlocked = home / f"{LOCK}.new"
    lock = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unlocked.rename(home / LOCK)  # nobody finds it before it is locked
    return home, lock


def sweep() -> None:
    """Remove what this user's judges have left of which no process runs any more."""
    for home in Path(tempfile.gettempdir()).glob(f"{tempfile.gettempprefix()}*"):
        try:
            if home.lstat().st_uid != os.getuid():
                continue
            lock = os.open(home / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # no judge's folder, or one that is just being made or removed
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(home, ignore_errors=True)
        except OSError:  # held by a living judge, or not to be told
            continue
        finally:
            os.close(lock)
