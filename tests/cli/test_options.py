"""Options that every command shares, and errors of mistyped options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.cli.main import COMMANDS, main
from adaexplore.records.run_records import RunRecords
from tests.judge_server import JudgeServer

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"
NOBODY = "http://127.0.0.1:9"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["runn"], "no command is called 'runn'; did you mean run?"),
        (["run", "--hlep"], "unknown argument '--hlep'; did you mean --help?"),
        (["stats", "run", "--steps", "3"], "unknown argument '--steps'; did you mean --step?"),
        (["stats"], "the following arguments are required: RUN; see adaexplore stats --help"),
        ([], "the following arguments are required: COMMAND"),
    ],
)
def test_mistyped_word_prints_line_with_suggestion(
    arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.startswith(f"adaexplore: {said}")
    assert len(printed.err.splitlines()) == 1


def test_each_mistake_in_a_configuration_has_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = tmp_path / "c.yaml"
    config.write_text("total_step: 3\np_large: 7\nnum_processes: many\nserver_type: command\n")
    assert main(["run", "--config", str(config), "--set", "seed=x", "--set", "total_steps"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 5
    assert all(line.startswith("adaexplore: ") for line in lines)


@pytest.mark.parametrize(
    "arguments",
    [
        ["run", "--task", str(PROBLEM), "--set", "server_type=offline", "--set", "save_path=RUN"],
        ["eval", str(PROBLEM), "--task", str(PROBLEM)],
        ["compile-check", str(PROBLEM), "--task", str(PROBLEM)],
        ["compare", "--config", "config/quickstart.yaml", "CONFIG", "--seeds", "1", "--out", "RUN"],
        ["baseline", "--config", "config/quickstart.yaml"],
        ["synth", "--check", str(PROBLEM.parent)],
        ["build-memory", "--verify", "results/memory/general_memory_v1.jsonl"],
    ],
)
def test_judge_option_works_in_every_command(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "other.yaml").write_text(Path("config/quickstart.yaml").read_text())
    named = {"RUN": str(tmp_path / "run"), "CONFIG": str(tmp_path / "other.yaml")}
    given = [named.get(each, each.replace("RUN", named["RUN"])) for each in arguments]
    assert main([*given, "--judge", NOBODY]) == 4
    assert f"no judge answers at {NOBODY}" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("adaexplore comp", "compile-check"),
        ("adaexplore stats --f", "--format"),
        ("adaexplore run --set total_s", "total_steps="),
    ],
)
def test_a_shell_can_complete_commands_options_and_keys(typed: str, offered: str, tmp_path: Path) -> None:
    answer = tmp_path / "answer"
    subprocess.run(
        [sys.executable, "-m", "adaexplore"],
        env=os.environ
        | {
            "_ARGCOMPLETE": "1",
            "_ARGCOMPLETE_STDOUT_FILENAME": str(answer),
            "COMP_LINE": typed,
            "COMP_POINT": str(len(typed)),
        },
        check=True,
        timeout=60,
    )
    assert offered in answer.read_text()


@pytest.mark.parametrize("command", COMMANDS)
def test_help_keeps_capitals(command: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main([command, "--help"])
    helped = " ".join(capsys.readouterr().out.split()).replace("- ", "-")
    assert COMMANDS[command][1:] + "." in helped


def test_short_options_set_the_keys(tmp_path: Path) -> None:
    folder = tmp_path / "run: #1"
    flags = ["--steps", "2", "--offline", "--preset", "paper", "--out", str(folder), "--set", "dummy=true"]
    assert main(["run", "--task", str(PROBLEM), *flags]) in (0, 1)
    found = RunRecords.existing(folder).settings()
    assert (found["total_steps"], found["server_type"], found["preset"]) == (2, "offline", "paper")
    assert found["save_path"] == str(folder)


def test_model_option_names_the_model(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["run", "--task", str(PROBLEM), "--model", "gpt-5-nano", "--dry-run"]) == 0
    assert "gpt-5-nano" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (["--steps", "3", "--set", "total_steps=4"], "--steps and --set total_steps=4 both give total_steps"),
        (["--offline", "--set", "server_type=openai"], "--offline and --set server_type=openai"),
        (["--out", "a", "--set", "save_path=a"], "--out and --set save_path=a"),
        (["--offline", "--model", "gpt-5"], "--offline asks no model; leave out --model"),
        (["--steps", "0"], "total_steps: expected a number >= 1, got 0"),
    ],
)
def test_contradicting_short_option_is_one_line(
    flags: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["run", "--task", str(PROBLEM), *flags]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert said in line


@pytest.mark.parametrize("service", ["openai", "claude", "azure"])
def test_missing_key_names_offline(
    service: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI", "ANTHROPIC", "AZURE"):
        monkeypatch.delenv(f"{name}_API_KEY", raising=False)
        monkeypatch.delenv(f"{name}_BASE_URL", raising=False)
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    flags = ["--set", f"server_type={service}", "--out", str(tmp_path / "run")]
    assert main(["run", "--task", str(PROBLEM), *flags]) == 3
    (line,) = capsys.readouterr().err.splitlines()
    assert "--offline" in line


JUDGED = [
    ["run", "--task", str(PROBLEM), "--offline", "--steps", "1", "--out", "RUN"],
    ["eval", str(PROBLEM), "--task", str(PROBLEM)],
    ["profile", str(PROBLEM), "--task", str(PROBLEM)],
    ["compile-check", str(PROBLEM), "--task", str(PROBLEM)],
    ["baseline", "--set", "problem_root=datasets/quickstart", "--set", "problem_id=2"],
    ["synth", "--check", str(PROBLEM.parent)],
    ["build-memory", "--verify", "results/memory/general_memory_v1.jsonl"],
]


@pytest.mark.parametrize("arguments", JUDGED, ids=lambda arguments: arguments[0])
@pytest.mark.parametrize(
    ("flags", "said"),
    [
        ([], "preset default: tier strict, TF32 policy off"),
        (["--preset", "paper"], "preset paper: tier legacy, TF32 policy "),
    ],
)
def test_commands_that_judge_say_the_rules(
    arguments: list[str], flags: list[str], said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    given = [each.replace("RUN", str(tmp_path / "run")) for each in arguments]
    with JudgeServer() as server:
        main([*given, *flags, "--judge", server.url])
    told = [message for message in caplog.messages if "preset" in message]
    assert len(told) == 1
    assert told[0].startswith(f"judging by {said}")


def test_file_without_preset_means_paper(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO")
    file = tmp_path / "c.yaml"
    file.write_text("dummy: true\nserver_type: offline\ntotal_steps: 1\n")
    run = ["run", "--task", str(PROBLEM), "--config", str(file), "--out", str(tmp_path / "run")]
    assert main(run) in (0, 1)
    assert "random verdicts (dummy) by preset paper: tier legacy, TF32 policy paper" in caplog.messages
    assert RunRecords.existing(tmp_path / "run").settings()["preset"] == "paper"


def test_run_of_another_preset_says_how_to_continue(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = ["run", "--task", str(PROBLEM), "--offline", "--set", "dummy=true", "--out", str(tmp_path / "run")]
    assert main([*run, "--steps", "1", "--preset", "paper"]) in (0, 1)
    capsys.readouterr()
    assert main([*run, "--steps", "2"]) == 2
    assert "add --preset paper" in capsys.readouterr().err
    assert main([*run, "--steps", "2", "--preset", "paper"]) in (0, 1)


@pytest.mark.parametrize(
    "command", [["eval", "k.py"], ["compile-check", "k.py"], ["profile", "k.py"], ["lint", "k.py"]]
)
def test_second_problem_of_one_command_is_refused(
    command: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([*command, "--task", "a.py", "--task", "b.py"])
    assert "--task is given twice" in capsys.readouterr().err
