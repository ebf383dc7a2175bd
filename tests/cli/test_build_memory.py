from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from adaexplore.cli import build_memory
from adaexplore.cli.main import main
from adaexplore.core.errors import BudgetReached
from skill_memory.failures.sources import Collected, from_run
from skill_memory.store import read_rules
from tests.online_judge.live import LiveJudge
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


REFERENCE = """import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2


def get_inputs():
    return [torch.rand(8)]


def get_init_inputs():
    return []
"""
PICKS = (
    "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n        return x[x > 0]\n"
)
SLICES = """import torch
import triton
import triton.language as tl


@triton.jit
def kernel(x, out):
    v = tl.load(x + tl.arange(0, 8))
    tl.store(out, v[0])


class ModelNew(torch.nn.Module):
    def forward(self, x):
        kernel[(1,)](x, x)
        return x
"""
CARET = "triton.compiler.errors.CompilationError:                  ^"


def test_undecided_candidate_hides_no_other_error(
    judge: LiveJudge, trees: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    failing = [{**STEPS[1], "code": code, "error": CARET} for code in (PICKS, SLICES, SLICES)]
    steps = [{**step, "step": number, "node_id": number} for number, step in enumerate(failing, 1)]
    (trees / "tree.json").write_text(json.dumps({"reference_src": REFERENCE, "steps": steps}))
    command = ["build-memory", "--traces", str(trees), *OFFLINE, "--out", str(tmp_path / "m.jsonl"), "--json"]
    remote = ["--set", "use_remote_eval=true", "--set", f"remote_eval_url={judge.url}"]
    assert main([*command, *remote]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert (figures["rules"], figures["explained"]) == (1, 2 / 3)
    assert read_rules(tmp_path / "m.jsonl")[0].count == 2


TRACES = Path(__file__).parents[3] / "shared" / "data" / "traces"


@pytest.mark.long
@pytest.mark.skipif(not TRACES.is_dir(), reason="no recorded trees here")
def test_most_failures_of_recorded_trees_are_explained(
    judge: LiveJudge, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "traces"
    shutil.copytree(TRACES, folder)
    picks = {**STEPS[1], "code": PICKS, "error": CARET}
    (folder / "odd.json").write_text(json.dumps({"reference_src": REFERENCE, "steps": [picks]}))
    command = [
        "build-memory",
        "--traces",
        str(folder),
        *OFFLINE,
        "--out",
        str(tmp_path / "m.jsonl"),
        "--json",
    ]
    remote = ["--set", "use_remote_eval=true", "--set", f"remote_eval_url={judge.url}"]
    assert main([*command, *remote]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["explained"] >= 0.75
    assert figures["model_calls"] <= 0.2 * figures["failures"]


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
