"""The main job end to end on the CPU: real processes, the real judge, the offline writer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaexplore.core.streams import derive_seed
from tests.online_judge.live import running_judge

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
TASKS = "1 1\n2 1\n"
STEPS = 3
KEYS = ["1_1", "2_1"]


@pytest.fixture(scope="module")
def task_list(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lists") / "some.txt"
    path.write_text(TASKS)
    return path


def command(run: Path, task_list: Path, *more: str) -> list[str]:
    chosen = [f"save_path={run}", f"test_list_path={task_list}", f"total_steps={STEPS}", *more]
    arguments = [argument for setting in chosen for argument in ("--set", setting)]
    return [sys.executable, "-m", "adaexplore", "run", "--config", "config/quickstart.yaml", *arguments]


def environment() -> dict[str, str]:
    return {key: value for key, value in os.environ.items() if key != "KERNELBENCH_ROOT"}


def run_whole(run: Path, task_list: Path, *more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        command(run, task_list, *more),
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory, task_list: Path) -> Path:
    run = tmp_path_factory.mktemp("whole") / "run"
    ended = run_whole(run, task_list)
    assert ended.returncode == 0, ended.stderr
    assert "Best kernels:" in ended.stdout
    return run


@pytest.fixture(scope="module")
def other_judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Start a judge that draws the inputs of the runs' own judges; yield the settings of runs that use it."""
    secret = str(derive_seed(0, "judge"))
    with running_judge(tmp_path_factory.mktemp("judge"), ADAEXPLORE_JUDGE_SECRET=secret) as live:
        yield "use_remote_eval=true", f"remote_eval_url={live.url}"


def contents(run: Path) -> dict[str, str]:
    """All that has to be equal between equal runs: times and the run's own path are left out."""
    return {
        str(path.relative_to(run)): path.read_text()
        for key in KEYS
        for path in sorted((run / key).iterdir())
        if not path.name.endswith("_usage.json")
    }


def steps_done(run: Path) -> int:
    return len(list(run.glob("*/step_[1-9]*_log.json")))


def begun(run: Path, task_list: Path, steps: int, *overrides: str) -> subprocess.Popen[bytes]:
    """Return a running run with so many finished steps."""
    process = subprocess.Popen(
        command(run, task_list, *overrides),
        cwd=ROOT,
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    deadline = time.monotonic() + 200
    while steps_done(run) < steps:
        assert process.poll() is None, "the run ended before it was stopped"
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return process


def orphans(run: Path) -> list[str]:
    """List processes that still work for a run: its judge writes the run's log."""
    found = []
    for process in Path("/proc").iterdir():
        try:
            if process.name.isdigit() and os.readlink(process / "fd" / "1").startswith(str(run)):
                found.append((process / "cmdline").read_text())
        except OSError:
            continue
    return found


def test_every_task_ends_with_a_correct_kernel(whole: Path) -> None:
    for key in KEYS:
        metrics = json.loads((whole / key / f"global_best_metrics_{STEPS}.json").read_text())
        assert metrics["correctness"], key
        kernel = (whole / key / f"global_best_kernel_{STEPS}.py").read_text()
        assert "@triton.jit" in kernel
    assert orphans(whole) == []


def test_statistics_claim_no_speedup_without_a_gpu(whole: Path) -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "adaexplore", "stats", str(whole), "--format", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    figures = json.loads(answer.stdout)
    assert (figures["tasks"], figures["correct"], figures["accuracy"]) == (2, 2, 1.0)
    assert figures["mean_speedup_all"] is None
    assert figures["fast_1_2"] is None
    assert [row["speedup"] for row in figures["per_task"]] == [None] * len(KEYS)
    assert figures["tokens"]["output"] > 0


def test_equal_runs_are_equal_to_the_byte(
    whole: Path, tmp_path: Path, task_list: Path, other_judge: tuple[str, str]
) -> None:
    assert run_whole(tmp_path / "run", task_list, *other_judge).returncode == 0
    assert contents(tmp_path / "run") == contents(whole)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_stopped_run_resumes_to_the_same_bytes(
    whole: Path,
    tmp_path: Path,
    task_list: Path,
    other_judge: tuple[str, str],
    number: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    run, temporary = tmp_path / "run", tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setenv("TMPDIR", str(temporary))
    process = begun(run, task_list, 3)
    process.send_signal(number)
    code = process.wait(60)
    assert code == (130 if number is signal.SIGINT else -signal.SIGKILL)
    for _ in range(100):
        if not orphans(run):
            break
        time.sleep(0.1)
    assert orphans(run) == []
    assert list(temporary.iterdir()) == []
    assert steps_done(run) < len(KEYS) * STEPS
    assert run_whole(run, task_list, *other_judge).returncode == 0
    assert contents(run) == contents(whole)


def test_replay_with_a_judge_gives_same_bytes(
    whole: Path, tmp_path: Path, task_list: Path, other_judge: tuple[str, str]
) -> None:
    replay = ("server_type=replay", f"replay_path={whole}")
    replayed = run_whole(tmp_path / "run", task_list, *replay, *other_judge)
    assert replayed.returncode == 0, replayed.stderr
    assert contents(tmp_path / "run") == contents(whole)


def adaexplore(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "adaexplore", *arguments],
        cwd=ROOT,
        env=environment(),
        capture_output=True,
        text=True,
        timeout=240,
    )


def test_offline_replay_gives_same_bytes_without_judge(whole: Path, tmp_path: Path) -> None:
    replayed = adaexplore("replay", str(whole), "--out", str(tmp_path / "run"))
    assert replayed.returncode == 0, replayed.stderr
    assert contents(tmp_path / "run") == contents(whole)
    assert not (tmp_path / "run" / "judge.log").exists()


def test_a_fork_goes_on_where_the_run_was(whole: Path, tmp_path: Path, other_judge: tuple[str, str]) -> None:
    fork = tmp_path / "run"
    changed = [word for setting in (f"save_path={fork}", *other_judge) for word in ("--set", setting)]
    forked = adaexplore("run", "--fork", str(whole), "--at", str(STEPS - 1), *changed)
    assert forked.returncode == 0, forked.stderr
    assert contents(fork) == contents(whole)


def test_run_killed_with_four_steps_in_flight_resumes(
    tmp_path: Path, task_list: Path, other_judge: tuple[str, str]
) -> None:
    run = tmp_path / "run"
    wide = ("parallel_steps=4", "total_steps=5")
    process = begun(run, task_list, 4, *wide)
    process.kill()
    process.wait(60)
    kept = {path: path.read_text() for path in run.glob("*/step_*_log.json")}
    ended = run_whole(run, task_list, *wide, *other_judge)
    assert ended.returncode == 0, ended.stderr
    assert {path: path.read_text() for path in kept} == kept
    figures = json.loads(adaexplore("stats", str(run), "--format", "json").stdout)
    assert (figures["correct"], figures["steps"]) == (2, 5)
    savings = figures["savings"]
    assert sum(savings["outcomes"].values()) == 10
    judged = [
        path.read_text() for path in run.glob("*/step_*_log.json") if '"evaluated": true' in path.read_text()
    ]
    assert savings["evaluations"] == len(judged)


def test_two_processes_do_not_write_one_run(whole: Path, task_list: Path) -> None:
    import fcntl

    with (whole / ".run.lock").open("a") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        refused = run_whole(whole, task_list)
    assert refused.returncode == 2
    assert "another process" in refused.stderr
