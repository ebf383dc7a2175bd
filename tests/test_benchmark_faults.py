"""Find the files of a benchmark whose own tests access memory outside of their tensors."""

import json
from pathlib import Path

import pytest

from tests.benchmark_faults import main

KERNEL = """
import torch
import triton
import triton.language as tl

@triton.jit
def twice(x, y, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(y + at, 2 * tl.load(x + at), at < n)

x = torch.ones({size}, device="cuda")
y = torch.empty_like(x)
twice[(1,)](x, y, {size}, BLOCK=8)
assert y.sum() == 2 * {size}
"""


def test_reads_outside_of_tensors_are_found(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = tmp_path / "files", tmp_path / "out.jsonl"
    folder.mkdir()
    (folder / "right.py").write_text(KERNEL.format(size=8))
    (folder / "outside.py").write_text(KERNEL.format(size=5))
    (folder / "slow.py").write_text("while True: pass\n")
    (folder / "exits.py").write_text("import sys\nprint('done')\nsys.exit(0)\n")
    arguments = [str(folder), "--out", str(out), "--limit-s", "20"]
    assert main(arguments) == 0
    ends = {line["file"]: line["end"] for line in map(json.loads, out.read_text().splitlines())}
    assert ends["right"] == "ran"
    assert ends["outside"].startswith("IllegalAccessError: illegal memory access: 3 of 8 elements of a load")
    assert (ends["slow"], ends["exits"]) == ("timeout", "SystemExit: 0")
    assert json.loads(capsys.readouterr().out) == dict.fromkeys(
        ("SystemExit", "IllegalAccessError", "ran", "timeout"), 1
    )
    assert main(arguments) == 0
    assert len(out.read_text().splitlines()) == 4


def test_folder_without_files_is_named(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    assert main([str(tmp_path), "--out", str(tmp_path / "out.jsonl")]) == 2
    assert f"no files *.py in {tmp_path}" in caplog.text
