"""A user of the release: their YAML, unchanged, with an OpenAI-compatible service and a real CPU judge."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from tests.model_server import Fail, ModelServer

ROOT = Path(__file__).parents[1]
CONFIG = "config/KB-l2/config_KB-l2_AdaExplore_50.yaml"
PROBLEM = """
import torch
import torch.nn as nn


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x) * 2.0


def get_inputs():
    return [torch.randn(8, 40)]


def get_init_inputs():
    return []
"""
KERNEL = """import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def double_relu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(out_ptr + at, tl.maximum(x, 0.0) * 2.0, mask=at < n)


class ModelNew(nn.Module):
    def forward(self, x):
        x = x.contiguous()
        out = torch.empty_like(x)
        double_relu[(triton.cdiv(x.numel(), 128),)](x, out, x.numel(), BLOCK=128)
        return out
"""
EDIT = "<old_str_1>\n* 2.0, mask\n</old_str_1>\n<new_str_1>\n* 3.0, mask\n</new_str_1>"


def model_text(prompt: str) -> str:
    """Write the service's replies: a correct kernel first, then edits that break it."""
    if "<old_str_1>" in prompt:
        return EDIT
    return f"```python\n{KERNEL}```" if "one fenced" in prompt.lower() else "1. Multiply by three."


def test_the_released_yaml_runs_unchanged(tmp_path: Path) -> None:
    folder = tmp_path / "KernelBench" / "level2"
    folder.mkdir(parents=True)
    (folder / "1_double_relu.py").write_text(PROBLEM)
    listed = tmp_path / "list.txt"
    listed.write_text("2\n")
    run = tmp_path / "run"
    with ModelServer() as server:
        server.reply = model_text
        server.script(
            Fail(400, "temperature is not supported", param="temperature", code="unsupported_value"),
            Fail(429, headers={"Retry-After": "0"}),
        )
        settings = {
            "base_url": server.openai_url,
            "use_remote_eval": "false",
            "judge_device": "cpu",
            "test_list_path": str(listed),
            "total_steps": "4",
            "save_path": str(run),
        }
        arguments = [part for key, value in settings.items() for part in ("--set", f"{key}={value}")]
        ended = subprocess.run(
            [sys.executable, "-m", "adaexplore", "run", "--config", CONFIG, *arguments],
            cwd=ROOT,
            env={**os.environ, "KERNELBENCH_ROOT": str(folder.parent)},
            capture_output=True,
            text=True,
            timeout=200,
        )
        bodies = [received.body for received in server.requests]
    assert ended.returncode == 0, ended.stderr
    assert "max_small_failures has no effect" in ended.stderr
    assert "temperature" in ended.stderr
    assert bodies[0]["temperature"] == 1.0
    assert all("temperature" not in body for body in bodies[1:])
    assert all(body["max_completion_tokens"] == 16384 and body["model"] == "gpt-5-mini" for body in bodies)
    first_prompt = bodies[0]["messages"][0]["content"]
    assert "You cannot call a dtype as a function" in first_prompt
    assert "NVIDIA GPU (Ampere)" in first_prompt
    task = run / "2_1"
    best = json.loads((task / "global_best_metrics_4.json").read_text())
    assert best["correctness"] is True
    assert (task / "global_best_kernel_4.py").read_text().strip() == KERNEL.strip()
    logs = [json.loads((task / f"step_{step}_log.json").read_text()) for step in range(5)]
    assert [log["created_by"] for log in logs][:2] == ["dummy_root", "large_step"]
    assert sum(log.get("evaluated", False) for log in logs) <= 2  # equal programs are judged once
    stats = subprocess.run(
        [sys.executable, "-m", "adaexplore", "stats", str(run), "--format", "json"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(stats.stdout)["tokens"]["input"] > 0


def test_refused_key_stops_run_naming_the_variable(tmp_path: Path) -> None:
    problem = tmp_path / "double_relu.py"
    problem.write_text(PROBLEM)
    with ModelServer() as server:
        server.script(Fail(401, "Incorrect API key provided: sk-oops-1234", code="invalid_api_key"))
        settings = [f"base_url={server.openai_url}", "judge_device=cpu", f"save_path={tmp_path / 'run'}"]
        arguments = [part for setting in settings for part in ("--set", setting)]
        ended = subprocess.run(
            [sys.executable, "-m", "adaexplore", "run", "--task", str(problem), *arguments],
            cwd=ROOT,
            env={**os.environ, "OPENAI_API_KEY": "sk-oops-1234"},
            capture_output=True,
            text=True,
            timeout=200,
        )
        asked = len(server.requests)
    assert ended.returncode == 3
    assert asked == 1
    assert "OPENAI_API_KEY" in ended.stderr.strip().splitlines()[-1]
    assert "sk-oops-1234" not in ended.stderr
