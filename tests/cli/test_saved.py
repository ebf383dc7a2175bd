"""``re-evaluate --saved``: a folder of kernels is judged once, despite interruptions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main
from tests.judge_server import PASSED, JudgeServer, failed

PROBLEM = """import torch
class Model(torch.nn.Module):
    def forward(self, x):
        return torch.{}(x)
def get_inputs(): ...
def get_init_inputs(): ...
"""


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write three kernels of two levels, with recorded speedups of one level."""
    monkeypatch.setenv("KERNELBENCH_ROOT", str(tmp_path / "bench"))
    folder = tmp_path / "saved/kernelbench"
    for level, number, operator in ((2, 1, "relu"), (2, 10, "matmul"), (3, 5, "sum")):
        problem = tmp_path / f"bench/level{level}/{number}_{operator}.py"
        problem.parent.mkdir(parents=True, exist_ok=True)
        problem.write_text(PROBLEM.format(operator))
        kernel = folder / f"level{level}/{number}.py"
        kernel.parent.mkdir(parents=True, exist_ok=True)
        kernel.write_text(f"kernel of {operator}")
    recorded = {"1": {"recorded_baseline": {"runtime_stats": {"fast_p": 1.25}}}}
    (folder / "metrics_level2.json").write_text(json.dumps({"problems": recorded}))
    return tmp_path / "saved"


def answer(_path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, str]]:
    if "matmul" in body["custom_model_src"]:
        return 200, failed("wrong_value", max_difference=["1.0"]), {}
    if "sum" in body["custom_model_src"]:
        flag = [{"id": "decoy_kernel", "severity": "suspect", "evidence": "seen"}]
        metadata = {"status": "passed", "integrity": ["decoy_kernel"], "integrity_evidence": flag}
        return 200, {**PASSED, "runtime_stats": {"mean": 1.0, "fast_p": 0.8}, "metadata": metadata}, {}
    return 200, {**PASSED, "metadata": {"status": "passed", "tier": "tf32"}}, {}


def call(saved: Path, url: str, *more: str) -> int:
    out = ["--out", str(saved.parent / "out"), "--judge", url]
    return main(["re-evaluate", "--saved", str(saved), *out, *more])


def cells(text: str) -> list[list[str]]:
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]


def test_table_has_kernels_and_figures_after_flags(saved: Path) -> None:
    with JudgeServer(answer) as server:
        assert call(saved, server.url) == 0
        assert {body["level"] for _, body in server.requests} == {"2", "3"}
    rows = cells((saved.parent / "out/table.md").read_text())
    assert ["2_1", "1.25x", "1.50x", "tf32", "-", "-"] in rows
    assert ["2_10", "-", "wrong_value", "-", "-", "-"] in rows
    assert ["3_5", "-", "0.80x suspect", "-", "decoy_kernel", "-"] in rows
    assert ["KB level 2, n=2", "value", "clean"] in rows
    assert rows[rows.index(["KB level 3, n=1", "value", "clean"]) + 2] == ["accuracy", "100.0%", "0.0%"]
    assert ["Reduce", "1", "1", "1", "0.800", "-"] in rows
    assert ["MatrixMultiply", "1", "0", "0", "-", "-"] in rows
    lines = [json.loads(line) for line in (saved.parent / "out/verdicts.jsonl").read_text().splitlines()]
    assert {line["key"]: line["published"] for line in lines} == {"2_1": 1.25, "2_10": None, "3_5": None}
    assert all(line["metrics"]["metadata"]["status"] for line in lines)


def test_failed_degenerate_problem_is_no_clean_figure(saved: Path) -> None:
    def trivial(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, str]]:
        if "matmul" not in body["custom_model_src"]:
            return answer(path, body)
        return 200, failed("wrong_value", max_difference=["1.0"], problem_flags=["degenerate_problem"]), {}

    with JudgeServer(trivial) as server:
        assert call(saved, server.url) == 0
    rows = cells((saved.parent / "out/table.md").read_text())
    assert rows[rows.index(["KB level 2, n=2", "value", "clean"]) + 2] == ["accuracy", "50.0%", "100.0%"]


def test_failing_judge_loses_no_verdict(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def dies(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, str]]:
        return (400, {"detail": "no"}, {}) if "sum" in body["custom_model_src"] else answer(path, body)

    with JudgeServer(dies) as server:
        assert call(saved, server.url, "--set", "num_processes=1") == 4
    with JudgeServer(answer) as server:
        assert call(saved, server.url) == 0
        assert [body["custom_model_src"] for _, body in server.requests] == ["kernel of sum"]
        assert call(saved, server.url) == 0
        assert len(server.requests) == 1
        assert call(saved, server.url, "--set", "tier=tf32") == 0  # other settings
        assert len(server.requests) == 4


def test_unjudgeable_problem_counts_nowhere(saved: Path) -> None:
    def too_large(path: str, body: dict[str, Any]) -> tuple[int, dict[str, Any], dict[str, str]]:
        error = {**PASSED, "success": False, "metadata": {}, "error": "Reference failed: too large"}
        return (200, error, {}) if "matmul" in body["custom_model_src"] else answer(path, body)

    with JudgeServer(too_large) as server:
        assert call(saved, server.url) == 4
    text = (saved.parent / "out/table.md").read_text()
    rows = cells(text)
    assert "2 of 3 kernels" in text
    assert ["2_10", "-", "not judged", "-", "-", "-"] in rows
    assert rows[rows.index(["KB level 2, n=1", "value", "clean"]) + 2] == ["accuracy", "100.0%", "100.0%"]
    assert not any(row[0] == "MatrixMultiply" for row in rows)


def test_list_chooses_kernels(saved: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (saved / "list.txt").write_text("2 10\n3\n")
    with JudgeServer(answer) as server:
        assert call(saved, server.url, "--tasks", str(saved / "list.txt")) == 0
        assert {body["problem_id"] for _, body in server.requests} == {"10", "5"}
    (saved / "list.txt").write_text("1\n")
    assert call(saved, "http://127.0.0.1:1", "--tasks", str(saved / "list.txt")) == 2
    assert "name other problems with --tasks" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ([], "name a run directory, or a folder of kernels"),
        (["run", "--saved", "SAVED"], "name a run directory, or a folder of kernels"),
        (
            ["--saved", "SAVED", "--step", "3"],
            "--step belongs to a run directory, --tasks and --out to --saved DIR",
        ),
        (["--saved", "EMPTY"], "holds no kernel; name a folder with files such as level2/15.py"),
        (["--saved", "TWICE"], "are kernels of one problem; remove one"),
        (["--saved", "MORE"], "7.py: no problem 7 in level 2"),
        (["--saved", "DAMAGED"], "metrics_level2.json is not of the expected form"),
    ],
)
def test_wrong_folder_prints_one_line(
    arguments: list[str], text: str, saved: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    level = saved / "kernelbench/level2"
    if "TWICE" in arguments:
        (level / "01.py").write_text("again")
    if "MORE" in arguments:
        (level / "7.py").write_text("more")
    if "DAMAGED" in arguments:
        (level.parent / "metrics_level2.json").write_text("[]")
    place = saved.parent / "nothing" if "EMPTY" in arguments else saved
    assert main(["re-evaluate", *(str(place) if each.isupper() else each for each in arguments)]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert text in line
