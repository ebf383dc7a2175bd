"""Forks and replays of a run with random verdicts."""

from __future__ import annotations

import json
import shutil
import threading
from collections.abc import Callable
from functools import reduce
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main
from adaexplore.core.errors import ProblemError
from adaexplore.core.task import Task
from adaexplore.records.run_records import RunRecords
from adaexplore.run.session import open_session
from adaexplore.settings.config import RunConfig

ROOT = Path(__file__).parents[2]
STEPS = 8


def settings(**more: object) -> list[str]:
    chosen = {
        "preset": "paper",
        "dummy": "true",
        "server_type": "offline",
        "problem_root": str(ROOT / "datasets/quickstart"),
        "total_steps": STEPS,
        **more,
    }
    return [text for key, value in chosen.items() for text in ("--set", f"{key}={value}")]


@pytest.fixture(scope="module")
def tasks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("lists") / "two.txt"
    path.write_text("1 1,3\n")
    return path


@pytest.fixture(scope="module")
def finished_run(tmp_path_factory: pytest.TempPathFactory, tasks: Path) -> Path:
    folder = tmp_path_factory.mktemp("finished") / "run"
    assert main(["run", *settings(save_path=folder, test_list_path=tasks)]) == 0
    return folder


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    """Copy the finished run, so that the test may change it."""
    return shutil.copytree(finished_run, tmp_path / "run")


def contents(run: Path) -> dict[str, str]:
    return {str(path.relative_to(run)): path.read_text() for path in sorted(run.glob("*/*"))}


def sources(run: Path, key: str) -> list[str]:
    return [record.draft.source for record in RunRecords(run).task(key).steps()]


@pytest.mark.parametrize("at", [1, 5, STEPS])
def test_fork_with_same_settings_repeats_the_run(run: Path, tmp_path: Path, at: int) -> None:
    before = contents(run)
    fork = tmp_path / "fork"
    assert main(["run", "--fork", str(run), "--at", str(at), "--set", f"save_path={fork}"]) == 0
    assert contents(fork) == before
    assert contents(run) == before
    told = json.loads((fork / "environment.json").read_text())["forked_from"]
    assert told == {"run": str(run.resolve()), "at": at}


def test_fork_shares_first_steps_and_then_differs(run: Path, tmp_path: Path) -> None:
    fork = tmp_path / "fork"
    arguments = ["run", "--fork", str(run), "--at", "3", "--set", f"save_path={fork}", "--set", "seed=9"]
    assert main(arguments) == 0
    for key in ("1_1", "1_3"):
        assert sources(fork, key)[:4] == sources(run, key)[:4]
        assert len(sources(fork, key)) == STEPS + 1
    assert contents(fork) != contents(run)
    once = contents(fork)
    assert main(arguments) == 0
    assert contents(fork) == once


def test_a_fork_takes_the_tasks_of_a_list(run: Path, tmp_path: Path) -> None:
    (tmp_path / "one.txt").write_text("1 3\n")
    chosen = ["--set", f"save_path={tmp_path / 'fork'}", "--set", f"test_list_path={tmp_path / 'one.txt'}"]
    assert main(["run", "--fork", str(run), "--at", "2", *chosen]) == 0
    assert RunRecords(tmp_path / "fork").tasks() == ["1_3"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--at", "3"], "go together"),
        (["--fork", "RUN"], "go together"),
        (["--fork", "RUN", "--at", "0"], "--at must be at least 1"),
        (["--fork", "RUN", "--at", "9", "--set", "save_path=TMP/new"], "at most 8 steps a task, not 9"),
        (["--fork", "RUN", "--at", "3", "--set", "save_path=RUN"], "cannot be forked into itself"),
        (["--fork", "TMP/none", "--at", "3"], "is not a folder"),
        (["--fork", "RUN", "--at", "3", "--task", "PROBLEM"], "holds none of this run's tasks"),
        (
            ["--fork", "RUN", "--at", "3", "--set", "save_path=TMP/new", "--set", "agent_type=PS"],
            "--fork needs a run of the same kind",
        ),
    ],
)
def test_impossible_fork_says_why(
    run: Path, tmp_path: Path, arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    other = str(ROOT / "datasets/quickstart/level1/2_row_sum.py")
    names = {"RUN": str(run), "TMP": str(tmp_path), "PROBLEM": other}
    given = [reduce(lambda text, name: text.replace(name, names[name]), names, text) for text in arguments]
    assert main(["run", *given]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize("into", ["1_3", "1_3/deeper", "new/deeper"])
def test_runs_inside_another_run_are_refused(
    run: Path, tmp_path: Path, into: str, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted(run.rglob("*"))
    inside = run / into
    other = tmp_path / "other"
    assert main(["run", "--fork", str(run), "--at", "2", "--set", f"save_path={other}"]) == 0
    capsys.readouterr()
    for arguments in (
        ["run", "--fork", str(other), "--at", "2", "--set", f"save_path={inside}"],
        ["replay", str(other), "--out", str(inside)],
        ["run", *settings(save_path=inside, level=1, problem_id=1)],
    ):
        assert main(arguments) == 2
        assert f"{inside} is inside the run {run}; " in capsys.readouterr().err.splitlines()[-1]
    assert sorted(run.rglob("*")) == files


def test_replay_gives_same_bytes_without_model_and_judge(
    run: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def nobody(*_: object, **__: object) -> None:
        raise AssertionError("a replay asks nobody")

    monkeypatch.setattr("adaexplore.judge_client.dummy.DummyJudge.evaluate", nobody)
    monkeypatch.setattr("adaexplore.offline_writer.writer.OfflineWriter.complete", nobody)
    monkeypatch.setattr("adaexplore.run.session.open_judge", nobody)
    again = tmp_path / "once #1: \N{ROCKET}\n\x85"
    assert main(["replay", str(run), "--out", str(again)]) == 0
    assert contents(again) == contents(run)
    told = json.loads((again / "environment.json").read_text())
    assert told["replay_of"] == str(run.resolve())
    assert told["judge"] == json.loads((run / "environment.json").read_text())["judge"]


def test_replay_uses_recorded_rules_and_problems(
    tmp_path: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory = tmp_path / "memory.txt"
    memory.write_text("You cannot fly.||9\n")
    run, again = tmp_path / "run", tmp_path / "again"
    chosen = settings(save_path=run, test_list_path=tasks, general_memory_path=memory, total_steps=3)
    assert main(["run", *chosen]) == 0
    memory.unlink()
    tasks_gone = monkeypatch.setattr("adaexplore.cli.run.load_tasks", lambda *_: [])
    assert tasks_gone is None
    assert main(["replay", str(run), "--out", str(again)]) == 0
    assert contents(again) == contents(run)
    assert "You cannot fly." in (again / "1_1" / "step_1_prompt.txt").read_text()


def test_replay_of_stopped_run_ends_at_same_step(run: Path, tmp_path: Path) -> None:
    for path in [*(run / "1_3").glob("step_[678]*"), *(run / "1_3").glob("global_best_*")]:
        path.unlink()
    for name in ("tree_stats.json", "tree_structure.txt"):
        (run / "1_3" / name).unlink()
    assert main(["replay", str(run), "--out", str(tmp_path / "again")]) == 0
    assert contents(tmp_path / "again") == contents(run)


def test_replay_repeats_failure_of_unrunnable_task(
    tmp_path: Path, tasks: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: object, task: Task) -> None:
        if task.key == "1_3":
            raise ProblemError(f"{task.path}: too large")

    with monkeypatch.context() as patched:
        patched.setattr("adaexplore.judge_client.dummy.DummyJudge.check_problem", refuse)
        assert main(["run", *settings(save_path=tmp_path / "run", test_list_path=tasks)]) == 4
    assert main(["replay", str(tmp_path / "run"), "--out", str(tmp_path / "again")]) == 4
    assert contents(tmp_path / "again") == contents(tmp_path / "run")


def test_replay_with_other_request_names_it(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = run / "1_1" / "step_3_exchanges.json"
    exchanges = json.loads(path.read_text())
    exchanges[0]["prompt"] += "?"
    path.write_text(json.dumps(exchanges))
    assert main(["replay", str(run), "--out", str(tmp_path / "again")]) == 3
    assert "the prompt of 1_1/3/" in capsys.readouterr().err


def test_a_replay_with_seeds_needs_no_seed_file(tmp_path: Path, tasks: Path) -> None:
    seed = tmp_path / "seed.py"
    seed.write_text("class ModelNew: ...\n")
    run = tmp_path / "run"
    assert (
        main(
            ["run", *settings(save_path=run, test_list_path=tasks, seed_kernel=seed, total_steps=4)],
        )
        == 0
    )
    log = json.loads((run / "1_1" / "step_1_log.json").read_text())
    assert (log["outcome"], log["parent_node_id"], log["created_by"]) == ("seed", 0, "large_step")
    seed.unlink()
    assert main(["replay", str(run), "--out", str(tmp_path / "again")]) == 0
    assert contents(tmp_path / "again") == contents(run)


def test_run_with_parallel_steps_is_not_replayed(
    tmp_path: Path, tasks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = tmp_path / "run"
    chosen = settings(save_path=run, test_list_path=tasks, parallel_steps=3, total_steps=3)
    assert main(["run", *chosen]) == 0
    assert main(["replay", str(run), "--out", str(tmp_path / "again")]) == 2
    assert "parallel_steps" in capsys.readouterr().err
    assert not (tmp_path / "again").exists()


def test_run_with_steps_out_of_order_not_replayed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for step, total_nodes in ((3, 5), (4, 4)):  # step 4 was observed before step 3
        path = run / "1_3" / f"step_{step}_log.json"
        path.write_text(json.dumps(json.loads(path.read_text()) | {"total_nodes": total_nodes}))
    assert main(["replay", str(run), "--out", str(tmp_path / "again")]) == 2
    assert "only runs with one step at a time" in capsys.readouterr().err


def test_a_replay_does_not_write_over_its_run(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(run), "--out", str(run)]) == 2
    assert "choose another directory" in capsys.readouterr().err


@pytest.mark.parametrize(
    "asked",
    [["replay", "RUN", "--out", "OTHER"], ["run", "--fork", "RUN", "--at", "2", "--set", "save_path=OTHER"]],
)
def test_replay_and_fork_refuse_another_runs_folder(
    run: Path, tmp_path: Path, tasks: Path, asked: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    assert main(["run", *settings(save_path=other, test_list_path=tasks, seed=5)]) == 0
    before = {path: path.read_bytes() for path in other.rglob("*") if path.is_file()}
    assert main([text.replace("RUN", str(run)).replace("OTHER", str(other)) for text in asked]) == 2
    assert "holds another run already" in capsys.readouterr().err
    assert {path: path.read_bytes() for path in other.rglob("*") if path.is_file()} == before


def test_fork_and_replay_continue_after_a_stop(run: Path, tmp_path: Path) -> None:
    for asked in (
        ["run", "--fork", str(run), "--at", "2", "--set", f"save_path={tmp_path / 'fork'}"],
        ["replay", str(run), "--out", str(tmp_path / "again")],
    ):
        assert [main(asked), main(asked)] == [0, 0]


def test_a_replay_keeps_no_limits(tmp_path: Path, tasks: Path) -> None:
    run, again = tmp_path / "run", tmp_path / "again"
    limits = {"requests_per_minute": 1000, "max_total_tokens": 10**9, "max_cost_usd": 5}
    assert main(["run", *settings(save_path=run, test_list_path=tasks, total_steps=2, **limits)]) == 0
    assert main(["replay", str(run), "--out", str(again)]) == 0
    told = (again / "config.yaml").read_text()
    assert [f"{key}: null" in told for key in limits] == [True] * 3


def test_task_keeps_rules_until_memory_settings_change(tmp_path: Path, tasks: Path) -> None:
    memory = tmp_path / "memory.txt"
    memory.write_text("You cannot fly.||9\nYou cannot swim.||5\n")
    run = tmp_path / "run"

    def go(steps: int, **more: object) -> str:
        chosen = settings(
            save_path=run, test_list_path=tasks, general_memory_path=memory, total_steps=steps, **more
        )
        assert main(["run", *chosen]) == 0
        return (run / "1_1" / f"step_{steps}_prompt.txt").read_text()

    assert "You cannot swim." in go(1)
    memory.write_text("You cannot walk.||9\n")
    assert "You cannot walk." not in go(2)
    assert "You cannot walk." in go(3, knowledge_1_threshold=4)
    assert json.loads((run / "1_1" / "rules.json").read_text()) == ["You cannot walk."]


def test_seeds_only_start_new_tasks(
    run: Path, tmp_path: Path, tasks: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "seed.py").write_text("class ModelNew: ...\n")
    chosen = settings(
        save_path=run, test_list_path=tasks, seed_kernel=tmp_path / "seed.py", total_steps=STEPS + 1
    )
    assert main(["run", *chosen]) == 0
    assert "was started without seed_kernel" in caplog.text
    assert json.loads((run / "1_1" / f"step_{STEPS + 1}_log.json").read_text())["outcome"] != "seed"


def test_replay_session_has_the_recorded_judge(run: Path, tmp_path: Path) -> None:
    config = RunConfig.model_validate({"dummy": True, "server_type": "offline"})
    replayed = RunRecords(run)
    with open_session(config, [], tmp_path / "again", threading.Event(), replayed=replayed) as session:
        assert session.access.identity.hardware == "dummy (random metrics)"


@pytest.mark.parametrize("changed", ["preset=default", "parallel_steps=1"])
def test_a_fork_under_other_settings_is_replayed_too(
    run: Path, tmp_path: Path, tasks: Path, changed: str
) -> None:
    if changed == "parallel_steps=1":  # steps that ended out of order are copied unchanged
        run = tmp_path / "parallel"
        chosen = settings(save_path=run, test_list_path=tasks, parallel_steps=3, total_steps=5)
        assert main(["run", *chosen]) == 0
    fork, again = tmp_path / "fork", tmp_path / "again"
    sets = ["--set", changed, "--set", f"save_path={fork}", "--set", f"total_steps={STEPS}"]
    assert main(["run", "--fork", str(run), "--at", "3", *sets]) == 0
    fork = fork.rename(tmp_path / "moved")
    assert main(["replay", str(fork), "--out", str(again)]) == 0
    assert contents(again) == contents(fork)


@pytest.mark.parametrize(
    ("name", "change", "said"),
    [
        ("1_1/step_2_exchanges.json", lambda told: told[0].update(finish="so"), "step 1_1/2/"),
        ("1_1/step_2_usage.json", lambda told: told.update(input_tokens="9"), "step_2_usage.json is damaged"),
        ("environment.json", lambda told: told.update(judge=7), "environment.json names no judge"),
    ],
)
def test_replay_of_damaged_record_prints_one_line(
    run: Path,
    tmp_path: Path,
    name: str,
    change: Callable[[Any], None],
    said: str,
    capsys: pytest.CaptureFixture[str],
) -> None:
    told = json.loads((run / name).read_text())
    change(told)
    (run / name).write_text(json.dumps(told))
    capsys.readouterr()
    assert main(["replay", str(run), "--out", str(tmp_path / "again")]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "again").exists()


def test_a_folder_of_another_name_is_not_replayed(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / "1_1").rename(run / "one_1")
    assert main(["replay", str(run), "--out", str(tmp_path / "again")]) == 2
    assert "is not named <level>_<problem_id>" in capsys.readouterr().err
