"""A judge's temporary folder, and those that killed judges have left."""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

LOCK = ".adaexplore-judge.lock"


def make() -> tuple[Path, int]:
    """Make a folder whose name means nothing; return it and the descriptor of its lock.

    Only gateway and fork server keep the descriptor open: the judge lives as long as one of them.
    """
    home = Path(tempfile.mkdtemp()).resolve()  # as a candidate's getcwd() says it
    unlocked = home / f"{LOCK}.new"
    lock = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unlocked.rename(home / LOCK)  # no other judge finds it before it is locked
    return home, lock


def sweep() -> None:
    """Remove temporary folders of this user's dead judges."""
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
        except OSError:  # held by a living judge, or unknown
            continue
        finally:
            os.close(lock)
