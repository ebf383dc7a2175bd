from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main
from adaexplore.core.environment import Environment, TritonFacts

BAD = """\
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.float32(tl.load(x_ptr))


class ModelNew(nn.Module):
    def forward(self, x):
        kernel[(1,)](x)
        return x
"""
GOOD = BAD.replace("float32", "exp")


def written(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def linted(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["lint", *arguments, "--json"]) == 0
    told: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return told


def test_findings_of_each_file_with_exit_code_0(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, good = written(tmp_path, "bad.py", BAD), written(tmp_path, "good.py", GOOD)
    first, second = linted(capsys, bad, good)
    assert second == {"file": good, "findings": []}
    assert first["file"] == bad
    (found,) = first["findings"]
    assert set(found) == {"rule", "line", "message"}
    assert (found["rule"], found["line"]) == ("called-dtype", 8)
    assert "tl.float32" in found["message"]


def test_file_named_twice_is_reported_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = written(tmp_path, "good.py", GOOD)
    assert [each["file"] for each in linted(capsys, good, good)] == [good, good]


def test_people_read_a_line_for_each_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, good = written(tmp_path, "bad.py", BAD), written(tmp_path, "good.py", GOOD)
    assert main(["lint", bad, good]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{bad}:8: tl.float32 ")
    assert first.endswith("[called-dtype]")
    assert second == f"{good}: nothing found"


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"class ModelNew(", b"x = 1\x00"])
def test_invalid_python_is_a_finding(tmp_path: Path, text: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (told,) = linted(capsys, written(tmp_path, "kernel.py", text))
    (found,) = told["findings"]
    assert (found["rule"], found["line"]) == ("syntax", 1)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (told,) = linted(capsys, written(tmp_path, "kernel.py", b"\xef\xbb\xbf" + GOOD.encode()))
    assert told["findings"] == []


def test_lint_accepts_a_judges_triton(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = written(tmp_path, "kernel.py", BAD.replace("float32", "squeeze"))
    names = {"triton.language": ["load"]}
    environment = Environment(hardware="CPU", triton=TritonFacts(names=names)).model_dump_json()
    (told,) = linted(capsys, kernel, "--triton", written(tmp_path, "judge_environment.json", environment))
    assert [found["rule"] for found in told["findings"]] == ["missing-triton-name"]
    (told,) = linted(capsys, kernel)
    assert told["findings"] == []


@pytest.mark.parametrize("missing", ["none.py", "."])
def test_unreadable_file_does_not_hide_other_findings(
    missing: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "bad.py", BAD)
    assert main(["lint", "bad.py", missing, "bad.py", "--json"]) == 2
    printed = capsys.readouterr()
    told = json.loads(printed.out)
    assert [each["file"] for each in told] == ["bad.py", "bad.py"]
    assert all(each["findings"] for each in told)
    (line,) = printed.err.splitlines()
    assert missing in line


def test_only_unreadable_files_give_an_empty_list(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["lint", str(tmp_path / "a.py"), str(tmp_path / "b.py"), "--json"]) == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out) == []
    first, second = printed.err.splitlines()
    assert first.endswith("a.py")
    assert second.endswith("b.py")


@pytest.mark.parametrize(
    "arguments",
    [["--triton", "none.json"], ["--triton", "kernel.py"], ["--task", "none.py"], ["--task", "."]],
)
def test_wrong_input_prints_line_with_exit_code_2(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "kernel.py", GOOD)
    assert main(["lint", "kernel.py", *arguments, "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


def test_a_file_that_takes_too_long_is_named(tmp_path: Path) -> None:
    source = tmp_path / "long.py"
    source.write_text("x = 1\n" * 200_000)
    # in a separate process: the exception may be raised in a callback of the garbage collector
    command = (sys.executable, "-m", "adaexplore", "lint", str(source), "--timeout", "0.2")
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == f"adaexplore: {source}: no findings within 0.2 s; raise --timeout\n"


def test_strict_findings_give_exit_code_1(tmp_path: Path) -> None:
    written(tmp_path, "bad.py", BAD)
    written(tmp_path, "good.py", GOOD)
    assert main(["lint", "--strict", str(tmp_path / "good.py")]) == 0
    assert main(["lint", "--strict", str(tmp_path / "good.py"), str(tmp_path / "bad.py")]) == 1
    assert main(["lint", str(tmp_path / "bad.py")]) == 0
