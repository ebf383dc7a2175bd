from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main
from tests.judge_server import Answer, JudgeServer

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"
PASSED = {"ok": True, "status": "passed", "kernel": None, "line": None, "message": ""}
FAILED = {"ok": False, "status": "compile", "kernel": "sum_kernel", "line": 12, "message": "at 3:4: no"}


def checked(tmp_path: Path, report: dict[str, Any], *flags: str) -> int:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("class ModelNew: ...\n")

    def jobs(method: str, _path: str, body: dict[str, Any], _key: str | None) -> Answer:
        if method == "POST":
            assert body["kind"] == "compile"
            return 202, {"id": "1", "status": "queued", "position": 0}, {}
        return 200, {"id": "1", "kind": "compile", "state": "done", "report": report}, {}

    with JudgeServer(jobs=jobs) as server:
        return main(["compile-check", str(kernel), "--task", str(PROBLEM), "--judge", server.url, *flags])


def test_a_kernel_that_compiles_is_exit_code_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path, PASSED, "--json") == 0
    assert json.loads(capsys.readouterr().out) == {"file": str(tmp_path / "kernel.py"), **PASSED}


def test_uncompilable_kernel_is_exit_code_1_with_message(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert checked(tmp_path, FAILED, "--json", "--target", "sm_80") == 1
    assert json.loads(capsys.readouterr().out) == {"file": str(tmp_path / "kernel.py"), **FAILED}


def test_gradients_are_compiled_whatever_writer_is_configured(tmp_path: Path) -> None:
    assert checked(tmp_path, PASSED, "--set", "server_type=offline", "--set", "direction=both") == 0


def test_people_read_place_and_reason(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path, FAILED) == 1
    assert capsys.readouterr().out == f"{tmp_path / 'kernel.py'}:12: compile in sum_kernel\nat 3:4: no\n"


def test_unchecked_kernel_is_not_a_failure(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert checked(tmp_path, {**PASSED, "ok": False, "status": "not_checked"}, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["ok"], printed["status"]) == (True, "not_checked")


@pytest.mark.parametrize(
    "arguments",
    [
        ["none.py", "--task", str(PROBLEM)],
        ["none.py", "--task", str(PROBLEM), "--json"],
        [".", "--task", str(PROBLEM), "--json"],
        ["kernel.py", "--task", "none.py"],
        ["kernel.py", "--task", str(PROBLEM), "--target", "hopper"],
    ],
)
def test_wrong_input_prints_line_with_exit_code_2(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kernel.py").write_text("class ModelNew: ...\n")
    assert main(["compile-check", *arguments]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


def test_the_time_limit_goes_to_the_judge(tmp_path: Path) -> None:
    asked: list[int] = []

    def jobs(method: str, _path: str, body: dict[str, Any], _key: str | None) -> Answer:
        if method == "POST":
            asked.append(body["request"]["timeout"])
            return 202, {"id": "1", "status": "queued", "position": 0}, {}
        return 200, {"id": "1", "kind": "compile", "state": "done", "report": PASSED}, {}

    kernel = tmp_path / "kernel.py"
    kernel.write_text("class ModelNew: ...\n")
    with JudgeServer(jobs=jobs) as server:
        given = ["compile-check", str(kernel), "--task", str(PROBLEM), "--judge", server.url]
        assert main(given) == 0
        assert main([*given, "--timeout", "7"]) == 0
        assert main([*given, "--timeout", "soon"]) == 2
    assert asked == [1800, 7]
