from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main
from tests.judge_server import PASSED, Answer, JudgeServer, failed

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"
BROKEN = {**PASSED, "success": False, "correctness": False, "metadata": {}, "error": "zygote died"}
REFERENCE = {**BROKEN, "error": "Reference failed: boom"}


def judged(tmp_path: Path, answer: dict[str, Any], *flags: str, code: int = 200) -> int:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("class ModelNew: ...\n")

    def reply(_path: str, _body: dict[str, Any]) -> Answer:
        return code, answer, {}

    with JudgeServer(reply) as server:
        settings = ["--set", "use_remote_eval=true", "--set", f"remote_eval_url={server.url}"]
        return main(["eval", str(kernel), "--task", str(PROBLEM), *flags, *settings])


def test_a_correct_kernel_is_exit_code_0_and_its_verdict_is_json(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, PASSED, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["status"], printed["correctness"], printed["compiled"]) == ("passed", True, True)
    assert (printed["speedup"], printed["runtime"]) == (1.5, 1.0)


def test_a_wrong_kernel_is_exit_code_1_with_its_verdict(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, failed("compile", feedback="line 3"), "--json") == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["status"], printed["speedup"], printed["metadata"]["feedback"]) == (
        "compile",
        None,
        "line 3",
    )


@pytest.mark.parametrize(("answer", "code"), [(BROKEN, 200), (REFERENCE, 200), (PASSED, 501)])
def test_a_failing_judge_or_problem_is_exit_code_4_and_no_verdict(
    tmp_path: Path, answer: dict[str, Any], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, answer, "--json", code=code) == 4
    assert capsys.readouterr().out == ""


def test_people_read_the_verdict_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged(tmp_path, PASSED)
    judged(tmp_path, failed("compile", feedback="line 3"))
    assert capsys.readouterr().out == "passed: 1.500x (1 ms)\ncompile\nline 3\n"
