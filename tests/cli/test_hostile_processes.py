"""Signals, full disks and broken terminals: an interrupted run continues to the same bytes."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"
REPLY = "```python\nclass ModelNew:\n    number = 1\n```\n" + "# a long reply\n" * 100
STEPS = 6


def command(folder: Path, *settings: str) -> list[str]:
    """Return the command of a run whose model takes some time for each reply."""
    reply = folder.parent / "reply.txt"
    reply.write_text(REPLY)
    model = f"sh -c 'cat > /dev/null; sleep 0.15; cat {reply}'"
    chosen = [
        "preset=paper",
        "dummy=true",
        "server_type=command",
        f'command="{model}"',
        f"total_steps={STEPS}",
    ]
    flags = [text for each in (*chosen, f"save_path={folder}", *settings) for text in ("--set", each)]
    return [sys.executable, "-m", "adaexplore", "run", "--task", str(PROBLEM), *flags]


def contents(folder: Path) -> dict[str, bytes]:
    """Read the records of a run without durations."""
    return {
        path.name: path.read_bytes()
        for path in (folder / "0_2_row_sum").iterdir()
        if not path.name.endswith(("_usage.json", "_superseded.json", ".tmp"))
    }


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole") / "run"
    subprocess.run(command(folder), check=True, capture_output=True, timeout=120)
    return contents(folder)


SIGNALS: dict[str, tuple[Sequence[int], int]] = {
    "ctrl-C": ([signal.SIGINT], 130),
    "ctrl-C twice": ([signal.SIGINT, signal.SIGINT], 130),
    "terminate": ([signal.SIGTERM], 130),
    "terminal closed": ([signal.SIGHUP], -signal.SIGHUP),
    "kill": ([signal.SIGKILL], -signal.SIGKILL),
}


@pytest.mark.parametrize("name", SIGNALS)
def test_signalled_run_continues_to_the_same_bytes(
    name: str, tmp_path: Path, whole: dict[str, bytes]
) -> None:
    numbers, code = SIGNALS[name]
    folder = tmp_path / "run"
    process = subprocess.Popen(command(folder), stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True)
    until(lambda: (folder / "0_2_row_sum" / "step_2_log.json").exists())
    for number in numbers:
        process.send_signal(number)
        time.sleep(0.02)
    _, printed = process.communicate(timeout=60)
    assert process.returncode == code
    assert "Traceback" not in printed
    if numbers == [signal.SIGINT]:
        assert printed.splitlines()[-1].startswith("adaexplore: stopped")
    assert not (folder / "0_2_row_sum" / f"step_{STEPS}_log.json").exists()
    again = subprocess.run(command(folder), capture_output=True, text=True, timeout=120)
    assert (again.returncode, "Traceback" in again.stderr) == (0, False)
    assert contents(folder) == whole


@pytest.mark.parametrize("limit", [1000, 10_000])
def test_run_continues_to_same_bytes_after_full_disk(
    limit: int, tmp_path: Path, whole: dict[str, bytes]
) -> None:
    def small_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    folder = tmp_path / "run"
    measured = [name for name in os.environ if name.startswith("COVERAGE_")]  # it could not write either
    env = {name: value for name, value in os.environ.items() if name not in measured}
    full = subprocess.run(
        command(folder), preexec_fn=small_files, env=env, capture_output=True, text=True, timeout=120
    )
    assert full.returncode == 5, full.stderr
    told = [line for line in full.stderr.splitlines() if line.startswith("adaexplore: ")]
    assert len(told) == 1
    assert "cannot write" in told[0]
    assert "Traceback" not in full.stderr
    assert subprocess.run(command(folder), capture_output=True, timeout=120).returncode == 0
    assert contents(folder) == whole


@pytest.mark.parametrize(
    ("shell", "code"),
    [
        ("$COMMAND lint $FILE >&-", 0),
        ("$COMMAND lint $FILE 2>&-", 0),
        ("$COMMAND lint $FILE <&-", 0),
        ("$COMMAND run $DUMMY 2>&-", 0),
        ("$COMMAND run $DUMMY >&- && $COMMAND show $FOLDER >&-", 0),
        ("$COMMAND run $DUMMY 2>/dev/full", 5),
        ("$COMMAND lint $FILE >/dev/full", 5),
        ("$COMMAND doctor 2>&1 >/dev/full", 5),
        ("set -o pipefail; $COMMAND --help | true", 0),
        ("set -o pipefail; $COMMAND doctor | true", 0),
        ("set -o pipefail; $COMMAND lint --strict $FILE $FILE | head -c 1", 1),
    ],
)
def test_lost_output_changes_no_exit_code(shell: str, code: int, tmp_path: Path) -> None:
    file = tmp_path / "kernel.py"
    file.write_text("x = 1\n")
    folder = tmp_path / "run"
    dummy = ["dummy=true", "server_type=offline", "total_steps=1", f"save_path={folder}"]
    variables = {"COMMAND": f"{sys.executable} -m adaexplore", "FILE": str(file), "PYTHONUNBUFFERED": ""}
    variables |= {"DUMMY": f"--task {PROBLEM} --set " + " --set ".join(dummy), "FOLDER": str(folder)}
    done = subprocess.run(
        ["bash", "-c", shell],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr


def until(holds: Callable[[], bool]) -> None:
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        time.sleep(0.01)
