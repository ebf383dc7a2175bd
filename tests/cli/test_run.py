from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from adaexplore.cli import run
from adaexplore.cli.main import main
from adaexplore.core.errors import Interrupted
from adaexplore.core.judging.status import Status
from adaexplore.core.task import Task
from adaexplore.core.verdict import Verdict
from adaexplore.judge_client.dummy import DummyJudge
from adaexplore.records.run_records import RunRecords
from tests.judge_server import Answer, JudgeServer, failed

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"


def start(folder: Path, *settings: str) -> int:
    chosen = ["dummy=true", "server_type=offline", "total_steps=2", f"save_path={folder}", *settings]
    return main(["run", "--task", str(PROBLEM), *(text for each in chosen for text in ("--set", each))])


REFUSED = {
    "no key": (["server_type=openai", "model_name=gpt-5-mini"], 3),
    "no price": (
        ["server_type=openai", "model_name=mine", "base_url=http://127.0.0.1:9", "max_cost_usd=1"],
        2,
    ),
    "no recording": (["server_type=replay", "replay_path=/none"], 2),
    "no seed": (["seed_kernel=/none"], 2),
    "no run to go on from": (["resume_from=/none"], 2),
    "no memory": (["memory_update=true", "general_memory_path=/dev/null/memory.txt"], 5),
    "no judge": (["dummy=false", "use_remote_eval=true", "remote_eval_url=http://127.0.0.1:9"], 4),
    "no limit": (["max_total_tokens=0"], 2),
    "no problems": (["test_list_path=/none"], 2),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_run_leaves_no_files(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    settings, code = REFUSED[name]
    if name == "no problems":
        assert main(["run", "--set", settings[0], "--set", f"save_path={tmp_path / 'run'}"]) == code
    else:
        assert start(tmp_path / "run", *settings) == code
    assert len(capsys.readouterr().err.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flags", [[], ["--dry-run"]])
def test_the_offline_writer_is_refused_gradients(
    flags: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--set", "direction=both", "--set", "server_type=offline", *flags]) == 2
    assert capsys.readouterr().err.startswith("adaexplore: direction: server_type 'offline' writes")


def test_dry_run_needs_no_new_memory(tmp_path: Path) -> None:
    memory = tmp_path / "memory.txt"
    sets = ["server_type=offline", "total_steps=1", "memory_update=true", f"general_memory_path={memory}"]
    words = ["run", "--task", str(PROBLEM), *(text for each in sets for text in ("--set", each))]
    assert main([*words, "--dry-run"]) == 0
    assert not memory.exists()


def test_refused_run_keeps_existing_files(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert start(tmp_path / "empty", "seed_kernel=/none") == 2
    assert (tmp_path / "empty").is_dir()
    assert start(tmp_path / "run") == 0
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    assert start(tmp_path / "run", "seed_kernel=/none") == 2
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_log_of_failed_judge_start_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert start(tmp_path / "run", "dummy=false", "judge_device=cpu") == 4
    assert f"see {tmp_path / 'run' / 'judge.log'}" in capsys.readouterr().err
    assert (tmp_path / "run" / "judge.log").is_file()


@pytest.mark.parametrize("named", [True, False])
def test_stopped_run_says_how_to_continue(
    named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object, **__: object) -> None:
        raise Interrupted("stopped; the same command continues from here")

    monkeypatch.setattr(run, "open_session", stopped)
    settings = ["--set", f"save_path={tmp_path}"] if named else []
    assert main(["run", "--task", str(PROBLEM), *settings]) == 130
    said = capsys.readouterr().err
    assert ("the same command continues" in said) is named
    assert ("--set save_path=outputs/MCTS_" in said) is not named


def test_a_signal_says_once_what_is_kept(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    def signalled(*_: object, **__: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        raise Interrupted("stopped")

    monkeypatch.setattr(run, "open_session", signalled)
    assert main(["run", "--task", str(PROBLEM), "--set", f"save_path={tmp_path}"]) == 130
    assert "stopping; finished steps are kept (again" in caplog.text


def test_a_run_without_a_correct_kernel_exits_1(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    wrong = Verdict(status=Status.WRONG_VALUE)
    monkeypatch.setattr(DummyJudge, "evaluate", lambda *_: wrong)
    assert start(tmp_path / "run") == 1
    assert "No task has a correct kernel yet." in capsys.readouterr().out
    assert not list(tmp_path.rglob("global_best_kernel_*.py"))
    assert start(tmp_path / "run") == 1  # finished; read again


def test_run_whose_folder_moves_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, moved = tmp_path / "run", tmp_path / "moved"

    def evaluate(_self: DummyJudge, _task: Task, _source: str, _best: float | None = None) -> Verdict:
        if (folder / "0_2_row_sum" / "step_1_log.json").exists():
            folder.rename(moved)
        return Verdict(status=Status.WRONG_VALUE)

    monkeypatch.setattr(DummyJudge, "evaluate", evaluate)
    assert start(folder, "total_steps=4") == 5
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith("adaexplore: the run's folder was moved or removed; ")
    assert not folder.exists()
    assert start(moved, "total_steps=4") == 1
    assert len(RunRecords(moved).task("0_2_row_sum").steps()) == 5


@pytest.mark.parametrize(("preset", "code"), [("default", 4), ("paper", 1)])
def test_failing_reference_costs_no_model_call(
    preset: str, code: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = tmp_path / "asked"
    settings = ["dummy=false", "use_remote_eval=true", f"preset={preset}", "total_steps=1"]
    model = ["server_type=command", f"command=sh -c 'touch {asked}; echo no code'"]

    def answer(path: str, _body: object) -> Answer:
        return (404, {}, {}) if path == "/v2/problem" else (200, failed("launch", feedback="it fails"), {})

    with JudgeServer(answer) as server:
        run_settings = [*settings, *model, f"remote_eval_url={server.url}"]
        assert start(tmp_path / "run", *run_settings) == code
    assert asked.exists() is (preset == "paper")
    assert ("fails as its own candidate: it fails" in capsys.readouterr().err) is (preset == "default")


SETTINGS = ("dummy=true", "server_type=offline", "total_steps=1")


def go(*words: str) -> int:
    return main(["run", *(text for each in SETTINGS for text in ("--set", each)), *words])


def test_configuration_of_a_run_records_its_tasks(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    out, other = tmp_path / "out", PROBLEM.with_name("3_softmax.py")
    files = ["--task", str(PROBLEM), "--task", str(other)]
    assert go(*files, "--set", f"save_path={out}") == 0
    records = RunRecords(out)
    assert records.settings()["task"] == [str(PROBLEM), str(other)]
    assert records.tasks() == ["0_2_row_sum", "0_3_softmax"]
    more = ["--set", "total_steps=2"]
    assert main(["run", "--config", str(out / "config.yaml"), *more]) == 0
    assert go(*files, "--set", f"save_path={out}", *more) == 0
    assert [records.task(key, "MCTS").step_count() for key in records.tasks()] == [2, 2]
    changes = [each.getMessage() for each in caplog.records if "other settings" in each.getMessage()]
    assert [change.partition("from here on: ")[2] for change in changes] == ["total_steps: 2"]


def test_chosen_problem_replaces_the_recorded_task(tmp_path: Path) -> None:
    assert go("--task", str(PROBLEM), "--set", f"save_path={tmp_path / 'one'}") == 0
    recorded = ["--config", str(tmp_path / "one/config.yaml"), "--set", f"save_path={tmp_path / 'two'}"]
    root = PROBLEM.parents[1]
    assert go(*recorded, "--set", f"problem_root={root}", "--set", "level=1", "--set", "problem_id=2") == 0
    assert RunRecords(tmp_path / "two").tasks() == ["1_2"]


def test_folder_of_files_runs_all_of_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert go("--task", str(PROBLEM.parent), "--dry-run") == 0
    assert go("--task", str(PROBLEM.parent)) == 0
    (folder,) = Path("outputs").iterdir()
    assert "_level1_1_" in folder.name
    names = {path.stem for path in PROBLEM.parent.glob("*.py")}
    assert set(RunRecords(folder).tasks()) == {f"0_{name}" for name in names}


def test_refused_task_prints_its_error_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def answer(path: str, _body: object) -> Answer:
        report = {"ok": False, "device": "cpu", "hardware": "CPU", "reason": "forward() fails: no such luck"}
        return (200, report, {}) if path == "/v2/problem" else (500, {}, {})

    with JudgeServer(answer) as server:
        settings = ["dummy=false", "use_remote_eval=true", f"remote_eval_url={server.url}"]
        assert start(tmp_path / "run", *settings) == 4
    printed = capsys.readouterr()
    assert (printed.out + printed.err).count("no such luck") == 1
    assert main(["show", str(tmp_path / "run")]) == 0
    assert capsys.readouterr().out.count("no such luck") == 1
