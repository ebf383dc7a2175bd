"""A judge's temporary folder, and removal of those of killed judges."""

import fcntl
import os
import shutil
import tempfile
from pathlib import Path

LOCK = ".adaexplore-judge.lock"


def make() -> tuple[Path, int]:
    """Make a folder with a random name; return it and its lock's descriptor.

    Only gateway and fork server keep the descriptor open, so the lock is held while one of them lives.
    """
    home = Path(tempfile.mkdtemp()).resolve()  # the same path as a candidate's getcwd() returns
    unlocked = home / f"{LOCK}.new"
    lock = os.open(unlocked, os.O_RDWR | os.O_CREAT, 0o600)
    fcntl.flock(lock, fcntl.LOCK_EX)
    unlocked.rename(home / LOCK)  # other judges find it only once it is locked
    return home, lock


def sweep() -> None:
    """Remove temporary folders of this user's dead judges."""
    for home in Path(tempfile.gettempdir()).glob(f"{tempfile.gettempprefix()}*"):
        try:
            if home.lstat().st_uid != os.getuid():
                continue
            lock = os.open(home / LOCK, os.O_RDWR | os.O_NOFOLLOW)
        except OSError:  # not a judge's folder, or one being made or removed
            continue
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(home, ignore_errors=True)
        except OSError:  # a living judge holds it
            continue
        finally:
            os.close(lock)
