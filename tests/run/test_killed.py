"""A run killed at any moment continues as if nothing had happened: real processes, real SIGKILL."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.core.usage import Usage
from adaexplore.records.run_records import RunRecords
from adaexplore.run.spending import spent

ROOT = Path(__file__).parents[2]
STEPS = 5
KEYS = ["1_1", "1_3"]

DRIVER = """
import itertools, os, signal, sys
import adaexplore.cli.run, adaexplore.offline_writer.writer
from adaexplore.cli.main import main

def run(folder, kill_at):
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    writes, real = itertools.count(1), os.replace
    def replace(source, target):
        if next(writes) == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
        real(source, target)
    os.replace, os.fsync = replace, lambda _: None
    os._exit(main(["run", "--set", f"save_path={folder}", *settings]))

base, first, stride, *settings = sys.argv[1:]
assert run(f"{base}/whole", 0) == 0
for kill_at in itertools.count(int(first), int(stride)):
    ended = run(f"{base}/{kill_at}", kill_at)
    if ended == 0:
        break
    assert ended == -signal.SIGKILL, ended
    assert run(f"{base}/{kill_at}", 0) == 0
print(kill_at)
"""


def killed_everywhere(folder: Path, stride: int, parallel_steps: int) -> list[Path]:
    """Return runs that were killed at every ``stride``-th file that they wrote, and continued."""
    tasks = folder / "tasks.txt"
    tasks.write_text("1 1,3\n")
    chosen = {
        "dummy": "true",
        "server_type": "offline",
        "problem_root": ROOT / "datasets/quickstart",
        "test_list_path": tasks,
        "total_steps": STEPS,
        "parallel_steps": parallel_steps,
        "seed": 4,
    }
    settings = [text for key, value in chosen.items() for text in ("--set", f"{key}={value}")]
    driver = [sys.executable, "-c", DRIVER, str(folder), str(stride // 2 + 1), str(stride), *settings]
    ended = subprocess.run(driver, cwd=ROOT, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    runs = [path for path in folder.iterdir() if path.name.isdecimal()]
    assert len(runs) * stride >= len(KEYS) * STEPS * 7, "too few files were written to tell"
    return runs


def tokens(usage: Usage) -> int:
    return usage.input_tokens + usage.output_tokens


def lost_tokens(run: Path) -> int:
    """Return the cost of steps that were not recorded."""
    records = RunRecords(run)
    recorded = [step.draft.usage for key in KEYS for step in records.task(key).steps()]
    return tokens(spent(records)[0]) - tokens(sum(recorded, Usage()))


def contents(run: Path) -> dict[str, str]:
    return {
        str(path.relative_to(run)): path.read_text()
        for key in KEYS
        for path in sorted((run / key).iterdir())
        if not path.name.endswith("_usage.json")
    }


def test_killed_sequential_runs_end_in_same_bytes(tmp_path: Path) -> None:
    runs = killed_everywhere(tmp_path, stride=13, parallel_steps=1)
    whole = contents(tmp_path / "whole")
    for run in runs:
        assert contents(run) == whole, run.name
    assert lost_tokens(tmp_path / "whole") == 0
    lost = [lost_tokens(run) for run in runs]
    assert min(lost) >= 0
    assert sum(number > 0 for number in lost) >= len(runs) // 2, "replies of killed steps are not counted"


@pytest.mark.parametrize("parallel_steps", [4])
def test_killed_parallel_runs_lose_and_repeat_nothing(tmp_path: Path, parallel_steps: int) -> None:
    for run in killed_everywhere(tmp_path, stride=16, parallel_steps=parallel_steps):
        for key in KEYS:
            records = RunRecords(run).task(key)
            steps = records.steps()
            assert sorted(step.node.plan.step for step in steps) == list(range(STEPS + 1)), run.name
            assert [step.node.total_nodes for step in steps] == list(range(1, STEPS + 2))
            judged = [step.draft.source for step in steps if step.evaluated]
            assert len(judged) == len(set(judged))
            assert records.finished(STEPS)
            assert not list(records.folder.glob(".*.tmp"))
            assert not list(records.folder.glob("*_superseded.json"))
