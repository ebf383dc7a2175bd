"""A problem of three workloads and a hidden one, through the whole agent without a model and a GPU."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
ROOT = Path(__file__).parents[1]
PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0 + 1.0


def get_workloads():
    return [
        {"name": "square", "get_inputs": lambda: [torch.randn(16, 16)]},
        {"name": "odd", "get_inputs": lambda: [torch.randn(7, 13)], "weight": 2.0},
        {"name": "long", "get_inputs": lambda: [torch.randn(1, 400)]},
    ]


def get_init_inputs():
    return []
"""
HIDDEN = """
def get_workloads():
    return [{"name": "confidential", "get_inputs": lambda: [torch.randn(3, 59)]}]
"""
STEPS = 2


def adaexplore(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    kept = {key: value for key, value in os.environ.items() if key != "KERNELBENCH_ROOT"}
    return subprocess.run(
        [sys.executable, "-m", "adaexplore", *arguments],
        cwd=folder,
        env=kept | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=280,
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("workloads")
    (folder / "affine.py").write_text(PROBLEM)
    (folder / "affine.hidden.py").write_text(HIDDEN)
    settings = ["server_type=offline", "use_remote_eval=false", "judge_device=cpu"]
    settings += [f"save_path={folder / 'run'}", f"total_steps={STEPS}"]
    chosen = [argument for setting in settings for argument in ("--set", setting)]
    ended = adaexplore("run", "--task", str(folder / "affine.py"), *chosen)
    assert ended.returncode == 0, ended.stderr + ended.stdout
    return folder / "run"


def test_best_kernel_is_correct_on_all_workloads(whole: Path) -> None:
    metrics = json.loads((whole / "0_affine" / f"global_best_metrics_{STEPS}.json").read_text())
    assert metrics["correctness"]
    listed = [
        (each["name"], each["correctness"], each["hidden"]) for each in metrics["metadata"]["workloads"]
    ]
    assert listed == [
        ("square", True, False),
        ("odd", True, False),
        ("long", True, False),
        ("confidential", True, True),
    ]


def test_no_prompt_holds_the_hidden_workload(whole: Path) -> None:
    prompts = list((whole / "0_affine").glob("*prompt*")) + list((whole / "0_affine").glob("*exchanges*"))
    texts = [path.read_text() for path in prompts]
    assert any("- odd (weight 2, inputs float32[7, 13]): passed" in text for text in texts)
    assert not any("confidential" in text or "59" in text for text in texts)


def test_show_lists_the_workloads(whole: Path) -> None:
    shown = adaexplore("show", str(whole), "0_affine", "1")
    assert "workload square (weight 1, inputs float32[16, 16]): passed" in shown.stdout


def test_replay_ends_in_the_same_bytes(whole: Path, tmp_path: Path) -> None:
    replayed = adaexplore("replay", str(whole), "--out", str(tmp_path / "run"))
    assert replayed.returncode == 0, replayed.stderr
    kept = [path for path in sorted((whole / "0_affine").iterdir()) if not path.name.endswith("_usage.json")]
    assert "hidden_workloads_src.py" in [path.name for path in kept]
    for path in kept:
        assert (tmp_path / "run" / "0_affine" / path.name).read_text() == path.read_text(), path.name


def test_example_of_the_page_runs_without_gpu(tmp_path: Path) -> None:
    page = (ROOT / "docs/workloads.md").read_text()
    (shell,) = re.findall(r"```bash\n(.*?)```", page, re.DOTALL)
    shown, hidden, *_ = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    (tmp_path / "softmax.py").write_text(shown)
    (tmp_path / "softmax.hidden.py").write_text(hidden)
    for line in shell.splitlines():
        name, *arguments = shlex.split(line)
        assert name == "adaexplore"
        ended = adaexplore(*arguments, folder=tmp_path)
        assert ended.returncode == 0, ended.stderr + ended.stdout
    assert "too large" not in ended.stderr
    assert "degenerate" not in ended.stdout
