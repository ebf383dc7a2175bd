"""The next judge removes leftovers of killed ones, and nothing else."""

import fcntl
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from online_judge.processes import temporary_folders

HOLDER = (
    "import os, sys\nfrom online_judge.processes import temporary_folders\n"
    "home, lock = temporary_folders.make()\n"
    "if os.fork():\n    print(home, flush=True)\n"  # as gateway and fork server
    "sys.stdin.read()\n"
)


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return tmp_path


def test_folder_is_removed_after_its_last_process_exits(temporary: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as judge:
        assert judge.stdout is not None
        assert judge.stdin is not None
        home = Path(judge.stdout.readline().strip())
        (home / "job-1").mkdir()
        temporary_folders.sweep()
        assert (home / "job-1").is_dir()
        judge.send_signal(signal.SIGKILL)
        judge.wait()
        temporary_folders.sweep()
        assert (home / "job-1").is_dir()  # the second process still runs
        judge.stdin.close()
    with (home / temporary_folders.LOCK).open("a") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # waits for its end
    temporary_folders.sweep()
    assert list(temporary.iterdir()) == []


def test_unlocked_foreign_and_linked_folders_are_left_alone(temporary: Path) -> None:
    kept = [temporary / "tmpstarting", temporary / "other"]
    for folder in kept:
        folder.mkdir()
    (kept[1] / temporary_folders.LOCK).touch()
    (temporary / "tmplink").symlink_to(kept[1])
    foreign = temporary / "tmpforeign"
    foreign.mkdir()
    (foreign / temporary_folders.LOCK).touch()
    if os.getuid() == 0:
        os.chown(foreign, 65534, 65534)
        kept.append(foreign)
    temporary_folders.sweep()
    assert all(folder.is_dir() for folder in kept)
    assert (kept[1] / temporary_folders.LOCK).exists()


def test_living_judge_folder_is_locked_from_creation() -> None:
    home, lock = temporary_folders.make()
    temporary_folders.sweep()
    assert [path.name for path in home.iterdir()] == [temporary_folders.LOCK]
    os.close(lock)
    temporary_folders.sweep()
    assert not home.exists()
