from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main

BAD = """\
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def kernel(x_ptr):
    x = tl.tanh(tl.load(x_ptr))


class ModelNew(nn.Module):
    def forward(self, x):
        kernel[(1,)](x)
        return x
"""
GOOD = BAD.replace("tanh", "exp")


def written(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return str(path)


def linted(capsys: pytest.CaptureFixture[str], *arguments: str) -> list[dict[str, Any]]:
    assert main(["lint", *arguments, "--json"]) == 0
    told: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
    return told


def test_each_file_has_its_findings_and_the_exit_code_is_0(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bad, good = written(tmp_path, "bad.py", BAD), written(tmp_path, "good.py", GOOD)
    first, second = linted(capsys, bad, good)
    assert second == {"file": good, "findings": []}
    assert first["file"] == bad
    (found,) = first["findings"]
    assert set(found) == {"rule", "line", "message"}
    assert (found["rule"], found["line"]) == ("missing-triton-name", 8)
    assert "tl.tanh" in found["message"]


def test_a_file_that_is_named_twice_is_told_twice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = written(tmp_path, "good.py", GOOD)
    assert [each["file"] for each in linted(capsys, good, good)] == [good, good]


def test_people_read_a_line_for_each_finding(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad, good = written(tmp_path, "bad.py", BAD), written(tmp_path, "good.py", GOOD)
    assert main(["lint", bad, good]) == 0
    first, second = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{bad}:8: tl.tanh ")
    assert first.endswith("[missing-triton-name]")
    assert second == f"{good}: nothing found"


@pytest.mark.parametrize("text", [b"\xff\xfe\x00", b"class ModelNew(", b"x = 1\x00"])
def test_what_is_not_python_is_a_finding(
    tmp_path: Path, text: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    (told,) = linted(capsys, written(tmp_path, "kernel.py", text))
    (found,) = told["findings"]
    assert (found["rule"], found["line"]) == ("syntax", 1)


def test_a_byte_order_mark_is_no_mistake(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (told,) = linted(capsys, written(tmp_path, "kernel.py", b"\xef\xbb\xbf" + GOOD.encode()))
    assert told["findings"] == []


def test_the_judges_triton_can_be_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = written(tmp_path, "kernel.py", BAD.replace("tanh", "squeeze"))
    (told,) = linted(capsys, kernel, "--triton", "3.6.0")
    assert "3.6.0" in str(told["findings"])
    (told,) = linted(capsys, kernel, "--triton", "3.7.1")
    assert "missing-triton-name" not in str(told["findings"])


@pytest.mark.parametrize("missing", ["none.py", "."])
def test_a_file_that_cannot_be_read_does_not_hide_the_findings_in_others(
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


def test_where_no_file_can_be_read_the_list_is_empty_and_each_has_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["lint", str(tmp_path / "a.py"), str(tmp_path / "b.py"), "--json"]) == 2
    printed = capsys.readouterr()
    assert json.loads(printed.out) == []
    first, second = printed.err.splitlines()
    assert first.endswith("a.py")
    assert second.endswith("b.py")


@pytest.mark.parametrize("arguments", [["--triton", "1.0"], ["--task", "none.py"], ["--task", "."]])
def test_wrong_input_is_one_line_and_exit_code_2(
    arguments: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    written(tmp_path, "kernel.py", GOOD)
    assert main(["lint", "kernel.py", *arguments, "--json"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    assert len(printed.err.splitlines()) == 1


def test_a_file_that_takes_too_long_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "long.py"
    source.write_text("x = 1\n" * 200_000)
    assert main(["lint", str(source), "--timeout", "0.2"]) == 2
    assert capsys.readouterr().err == f"adaexplore: {source}: no findings within 0.2 s; raise --timeout\n"


def test_strict_ends_with_exit_code_1_where_there_are_findings(tmp_path: Path) -> None:
    written(tmp_path, "bad.py", BAD)
    written(tmp_path, "good.py", GOOD)
    assert main(["lint", "--strict", str(tmp_path / "good.py")]) == 0
    assert main(["lint", "--strict", str(tmp_path / "good.py"), str(tmp_path / "bad.py")]) == 1
    assert main(["lint", str(tmp_path / "bad.py")]) == 0
