from __future__ import annotations

import importlib.util
import json
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from adaexplore.cli.main import COMMANDS, main
from tests import judge_server
from tests.judge_server import JudgeServer


@pytest.fixture(autouse=True)
def _quiet_logging() -> Iterator[None]:
    handlers, level = logging.root.handlers[:], logging.root.level
    yield
    logging.root.handlers[:] = handlers
    logging.root.setLevel(level)


def test_module_and_command_are_the_same() -> None:
    answer = subprocess.run(
        [sys.executable, "-m", "adaexplore", "--version"], capture_output=True, text=True, check=True
    )
    assert answer.stdout.startswith("adaexplore ")


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_explains_itself(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main([command, "--help"])
    assert ended.value.code == 0
    assert command in capsys.readouterr().out


def test_commands_page_lists_every_command() -> None:
    page = (Path(__file__).parents[2] / "docs/commands.md").read_text()
    for command in COMMANDS:
        assert f"| `adaexplore {command}" in page


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["run", "--config", "no/such.yaml"], 2, "no/such.yaml"),
        (["run", "--set", "total_step=3"], 2, "total_steps"),
        (["run", "--set", "total_steps=many"], 2, "total_steps: expected an integer"),
        (["run", "--set", "agent_type=MCST"], 2, "MCTS"),
        (["run", "--set", "total_steps"], 2, "key=value"),
        (["run", "--task", "no_such_module.py"], 2, "no_such_module.py"),
        (["run", "--set", "problem_root=no/such/folder"], 2, "no/such/folder"),
        (["stats", "no/such/run"], 2, "no/such/run"),
        (["re-evaluate", "no/such/run"], 2, "no/such/run"),
        (["re-evaluate", "no/such/run", "--step", "0"], 2, "--step must be at least 1"),
        (["eval", "no_kernel.py", "--task", "no_problem.py"], 2, "no_problem.py"),
    ],
)
def test_bad_input_prints_line_with_exit_code_2(
    arguments: list[str],
    code: int,
    said: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("KERNELBENCH_ROOT", raising=False)
    assert main(arguments) == code
    captured = capsys.readouterr()
    assert captured.out == ""
    assert len(captured.err.strip().splitlines()) == 1
    assert said in captured.err


def test_missing_key_is_reported_before_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    problem = tmp_path / "double.py"
    problem.write_text(
        "class Model:\n    pass\n\n\n"
        "def get_inputs():\n    return []\n\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    run = tmp_path / "run"
    assert main(["run", "--task", str(problem), "--set", f"save_path={run}"]) == 3
    assert "OPENAI_API_KEY" in capsys.readouterr().err


def test_doctor_never_shows_a_key(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-very-secret")
    assert main(["doctor"]) == 0
    printed = capsys.readouterr().out
    assert "OPENAI_API_KEY set" in printed
    assert "very-secret" not in printed


def test_doctor_warns_of_missing_sandbox_limits(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with JudgeServer() as server:
        main(["doctor", "--judge", server.url])
        assert "sandbox" not in capsys.readouterr().out
        told = {"network": True, "memory": True, "level": "full", "evaluator": "namespaces"}
        monkeypatch.setattr(judge_server, "HEALTH", {**judge_server.HEALTH, "sandbox": told})
        main(["doctor", "--judge", server.url])
        printed = capsys.readouterr().out
        assert "judge sandbox: network, memory\n" in printed
        assert "judge sandbox level: full for candidates, namespaces for references\n" in printed
        assert "warning" not in printed
        monkeypatch.setattr(
            judge_server, "HEALTH", {**judge_server.HEALTH, "sandbox": told | {"memory": False}}
        )
        main(["doctor", "--judge", server.url])
    warnings = [line for line in capsys.readouterr().out.splitlines() if line.startswith("warning")]
    assert len(warnings) == 1
    assert warnings[0].endswith("for candidates: memory")


def test_doctor_lists_the_judges_devices_and_states(capsys: pytest.CaptureFixture[str]) -> None:
    ready = {"device": 0, "host": "a", "hardware": "H100", "slots": 4, "state": "ready"}
    refused = {
        "device": 1,
        "host": "b",
        "hardware": "",
        "slots": 0,
        "state": "refused",
        "reason": "old torch",
    }
    with JudgeServer(workers=[ready, refused]) as server:
        main(["doctor", "--judge", server.url])
    printed = capsys.readouterr().out
    assert "judge device 0: H100 on a, slots: 4, ready\n" in printed
    assert "judge device 1: unknown on b, slots: 0, refused: old torch\n" in printed


def test_judge_on_many_machines_needs_ray(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = importlib.util.find_spec
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None if name == "ray" else found(name))
    assert main(["judge", "--ray"]) == 2
    assert "pip install 'adaexplore[scale]'" in capsys.readouterr().err


def test_doctor_says_that_no_judge_answers(capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer() as server:
        url = server.url
    assert main(["doctor", "--judge", url]) == 0
    assert f"judge: no judge answers at {url}" in capsys.readouterr().out


def test_doctor_says_what_an_azure_key_still_needs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AZURE_API_KEY", "secret")
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    main(["doctor"])
    assert "once AZURE_OPENAI_ENDPOINT is set" in capsys.readouterr().out


def test_best_prefix_is_written_only_where_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    task = tmp_path / "run" / "1_1"
    task.mkdir(parents=True)
    found = {"compiled": True, "correctness": True, "metadata": {}, "runtime": 1.0}
    (task / "global_best_metrics_2.json").write_text(json.dumps({**found, "runtime_stats": {"fast_p": 2.0}}))
    (task / "global_best_kernel_2.py").write_text("class ModelNew: ...")
    before = sorted(path.name for path in (tmp_path / "run").rglob("*"))
    written = tmp_path / "best_prefix.json"
    assert main(["stats", str(tmp_path / "run"), "--best-prefix", str(written)]) == 0
    assert list(json.loads(written.read_text())) == ["1_1"]
    assert sorted(path.name for path in (tmp_path / "run").rglob("*")) == before
    assert "2.000" in capsys.readouterr().out


def test_unusable_path_prints_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["stats", "x" * 300]) == 5
    said = capsys.readouterr().err
    assert "File name too long" in said
    assert len(said.splitlines()) == 1


@pytest.mark.parametrize("module", ["stats", "eval"])
def test_sigterm_ends_a_command_as_an_interrupt_does(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    left: list[str] = []

    def waits(_args: object) -> int:
        try:
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(5)
        finally:
            left.append("in good order")
        return 0

    monkeypatch.setattr(f"adaexplore.cli.{module}.run", waits)
    before = signal.getsignal(signal.SIGTERM)
    assert main([module, *(["x"] if module == "stats" else ["x", "--task", "y"])]) == 130
    assert left == ["in good order"]
    assert capsys.readouterr().err == "adaexplore: interrupted\n"
    assert signal.getsignal(signal.SIGTERM) is before


def test_interrupt_during_import_prints_one_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(_name: str) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("adaexplore.cli.main.importlib.import_module", interrupted)
    assert main(["stats", "x"]) == 130
    assert capsys.readouterr().err == "adaexplore: interrupted\n"


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full")
@pytest.mark.parametrize("buffered", ["", "1"])
def test_unwritable_output_prints_one_line(tmp_path: Path, buffered: str) -> None:
    (tmp_path / "kernel.py").touch()
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "adaexplore", "lint", str(tmp_path / "kernel.py")],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ | {"PYTHONUNBUFFERED": buffered},
        )
    assert ended.returncode == 5
    assert ended.stderr == "adaexplore: cannot write the output: no space is left\n"


def _recorded_run(folder: Path, tasks: int = 1) -> Path:
    for number in range(1, tasks + 1):
        task = folder / f"1_{number}"
        task.mkdir(parents=True)
        found = {"compiled": True, "correctness": True, "metadata": {}, "runtime": 1.0}
        found["runtime_stats"] = {"fast_p": 2.0}
        (task / "global_best_metrics_2.json").write_text(json.dumps(found))
        (task / "global_best_kernel_2.py").write_text("class ModelNew: ...")
    return folder


@pytest.mark.parametrize("form", ["table", "json", "csv", "md"])
def test_a_name_that_stdout_cannot_encode_is_escaped(form: str, tmp_path: Path) -> None:
    runs = [_recorded_run(tmp_path / name) for name in ("Übung-漢", os.fsdecode(b"not-utf-8-\xff"))]
    done = subprocess.run(
        [sys.executable, "-m", "adaexplore", "stats", *map(str, runs), "--format", form],
        capture_output=True,
        env=os.environ | {"PYTHONIOENCODING": "ascii", "LC_ALL": "C"},
    )
    assert done.stderr == b""
    assert done.returncode == 0
    assert "\\u6f22" in done.stdout.decode("ascii")
    if form == "json":
        assert [Path(run["run"]) for run in json.loads(done.stdout)] == runs


@pytest.mark.parametrize("options", [["stats", "RUN"], ["stats", "--help"]])
def test_closed_output_pipe_is_no_error(options: list[str], tmp_path: Path) -> None:
    run = _recorded_run(tmp_path / "run", tasks=100)
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-m", "adaexplore", *(str(run) if each == "RUN" else each for each in options)],
        stdout=write,
        stderr=subprocess.PIPE,
    )
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")
