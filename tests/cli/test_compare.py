from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from adaexplore.records.run_records import RunRecords

ROOT = Path(__file__).parents[2]


@pytest.fixture
def configs(tmp_path: Path) -> list[str]:
    for name, extra in (("plain", "selection: uct"), ("lines", "selection: lineages")):
        (tmp_path / f"{name}.yaml").write_text(
            "preset: default\ndummy: true\nserver_type: offline\ntotal_steps: 3\nnum_processes: 2\n"
            f"problem_root: {ROOT}/datasets/quickstart\n{extra}\n"
        )
    (tmp_path / "list.txt").write_text("1 1,3\n")
    return [str(tmp_path / "plain.yaml"), str(tmp_path / "lines.yaml")]


def test_runs_are_paired_and_kept(
    tmp_path: Path, configs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    listed, out = tmp_path / "list \N{ROCKET}.txt", tmp_path / "out #1: \N{ROCKET}"
    listed.write_text("1 1,3\n")
    command = ["compare", "--config", *configs, "--seeds", "2", "--tasks", str(listed), "--out", str(out)]
    assert main([*command, "--json"]) == 0
    first, second = json.loads(capsys.readouterr().out)
    assert (first["name"], first["runs"], first["tasks"], first["ratio"]) == ("plain", 2, 4, None)
    assert (second["name"], second["pairs"]) == ("lines", 4)
    assert second["ci_low"] <= second["ratio"] <= second["ci_high"]
    seeds = {RunRecords(path).environment()["seed"] for path in (out / "plain").iterdir()}
    assert seeds == {0, 1}
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.rglob("step_*_log.json")}
    assert main(command) == 0
    assert "against plain" in capsys.readouterr().out
    assert stamps == {path: path.stat().st_mtime_ns for path in tmp_path.rglob("step_*_log.json")}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--config", "0"], "--config takes two or more files"),
        (["--config", "0", "0"], "--config takes two or more files"),
        (["--config", "0", "1", "--seeds", "0"], "--seeds must be at least 1"),
        (["--config", "0", "1", "--set", "memory_update=true"], "with memory_update one run would learn"),
    ],
)
def test_incomparable_configurations_are_refused_before_runs(
    tmp_path: Path,
    configs: list[str],
    capsys: pytest.CaptureFixture[str],
    options: list[str],
    message: str,
) -> None:
    given = [configs[int(option)] if option in "01" and before != "--seeds" else option
             for before, option in zip(["", *options], options, strict=False)]  # fmt: skip
    assert main(["compare", "--out", str(tmp_path / "out"), *given]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_other_tasks_are_refused(
    tmp_path: Path, configs: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with Path(configs[1]).open("a") as file:
        file.write("problem_id: 3\n")
    assert main(["compare", "--config", *configs, "--out", str(tmp_path / "out")]) == 2
    assert "name different tasks; give one list with --tasks" in capsys.readouterr().err
