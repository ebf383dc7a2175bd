from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaexplore.cli import build_memory
from adaexplore.cli.main import main
from adaexplore.core.errors import BudgetReached
from skill_memory.failures.sources import Collected, from_run
from skill_memory.store import read_rules
from tests.skill_memory.test_sources import STEPS

OFFLINE = ["--set", "server_type=offline"]


@pytest.fixture
def trees(tmp_path: Path) -> Path:
    folder = tmp_path / "trees"
    folder.mkdir()
    (folder / "tree.json").write_text(json.dumps({"label": "t", "reference_src": "x", "steps": STEPS}))
    return folder


@pytest.mark.parametrize("name", ["memory.jsonl", "memory.txt"])
def test_memory_is_built_and_figures_are_printed(
    trees: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / name
    command = ["build-memory", "--traces", str(trees), *OFFLINE, "--out", str(out), "--no-judge", "--json"]
    assert main(command) == 0
    assert json.loads(capsys.readouterr().out) == {
        "failures": 5,
        "infrastructure": 2,
        "signatures": 1,
        "model_calls": 1,
        "rules": 1,
        "explained": 0.6,
    }
    (rule,) = read_rules(out)
    assert rule.text.startswith("You cannot call a dtype")
    assert rule.count == 2
    assert main([*command[:-1]]) == 0
    assert "60% of the failures" in capsys.readouterr().out
    assert read_rules(out) == [rule]


def test_build_memory_ends_at_its_limit_and_continues(trees: Path, tmp_path: Path) -> None:
    out = tmp_path / "memory.jsonl"
    command = ["build-memory", "--traces", str(trees), *OFFLINE, "--out", str(out), "--no-judge"]
    assert main([*command, "--set", "max_wall_s=0.000001"]) == BudgetReached.exit_code
    assert read_rules(out) == []
    assert main(command) == 0
    assert len(read_rules(out)) == 1


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "--runs or --traces"),
        (["--traces", "x"], "--out"),
        (["--verify", "m.txt"], ".jsonl"),
        (["--verify", "m.jsonl", "--out", "y"], "leave out"),
        (["--verify", "absent.jsonl"], "absent.jsonl"),
        (["--traces", "x", "--out", "m.txt", "--prove"], ".jsonl"),
        (["--traces", "nowhere", "--out", "m.jsonl"], "no recorded trees"),
        (["--runs", "nowhere", "--out", "m.jsonl"], "nowhere"),
    ],
)
def test_wrong_command_gets_one_line_of_advice(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build-memory", *OFFLINE, *arguments]) == 2
    error = capsys.readouterr().err
    assert says in error
    assert "Traceback" not in error


def test_duplicate_runs_and_runs_without_failures(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run, out = tmp_path / "run", tmp_path / "memory.jsonl"
    run.mkdir()
    (tmp_path / "link").symlink_to(run)
    (run / "config.yaml").write_text("{}")
    read: list[Path] = []

    def counted(folder: Path) -> Collected:
        read.append(folder)
        return from_run(folder)

    monkeypatch.setattr(build_memory, "from_run", counted)
    command = ["build-memory", "--runs", str(run), str(tmp_path / "link"), "--out", str(out)]
    assert main([*command, *OFFLINE, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rules"] == 0
    assert len(read) == 1
    assert read_rules(out) == []
