"""Options that every command shares, and errors of mistyped options."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.cli.main import main

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
        ["baseline", "--config", "config/quickstart.yaml"],
        ["synth", "--check", str(PROBLEM.parent)],
        ["build-memory", "--verify", "results/memory/general_memory_v1.jsonl"],
    ],
)
def test_judge_option_works_in_every_command(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = [each.replace("RUN", str(tmp_path / "run")) for each in arguments]
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
