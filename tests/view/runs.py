"""Run folders for the view, written without waiting for the disk."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

REFERENCE = "import torch\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n        return x\n"


def verdict(status: str, speedup: float | None = None, **metadata: Any) -> dict[str, Any]:
    """Return the object of a metrics file."""
    timed = speedup is not None
    return {
        "compiled": status not in ("syntax", "load"),
        "correctness": timed,
        "metadata": {"status": status, **metadata},
        "runtime": 1.0 / speedup if timed else -1.0,
        "runtime_stats": {
            "fast_p": speedup,
            "ci_low": 0.95 * speedup,
            "ci_high": 1.05 * speedup,
            "baseline_time": 1.0,
        }
        if timed
        else {},
    }


def write_step(
    task: Path,
    step: int,
    found: dict[str, Any] | None = None,
    *,
    parent: int | None = 0,
    kind: str = "large_step",
    context: tuple[int, ...] = (),
    code: str | None = None,
    reply: str = "reply",
) -> None:
    """Write one step's files, the log last; without a verdict it is the dummy root."""
    task.mkdir(parents=True, exist_ok=True)
    stem = task / f"step_{step}"
    if found is not None:
        kernel = f"import triton\n\n# step {step}\ndef kernel_{step}(x):\n    return x + {step}\n"
        exchange = {"purpose": "large", "prompt": f"prompt of {step}", "reply": reply}
        stem.with_name(f"step_{step}.py").write_text(kernel if code is None else code)
        stem.with_name(f"step_{step}_metrics.json").write_text(json.dumps(found))
        stem.with_name(f"step_{step}_exchanges.json").write_text(json.dumps([exchange]))
        usage = {"input_tokens": 1000, "output_tokens": 500, "seconds": 2.0, "usd": 0.01}
        stem.with_name(f"step_{step}_usage.json").write_text(json.dumps(usage))
    log = {
        "node_id": step,
        "parent_node_id": None if found is None else parent,
        "context_node_ids": list(context),
        "depth": 0,
        "created_by": "dummy_root" if found is None else kind,
        "visits": 0,
        "total_reward": 0.0,
        "max_reward": 0.0,
        "score": [0, 0, 0.0],
        "total_nodes": step + 1,
        "global_best_node_id": 0,
        "global_best_score": [0, 0, 0.0],
        "outcome": "written",
        "evaluated": found is not None,
    }
    partial = task / f".step_{step}_log.json.tmp"
    partial.write_text(json.dumps(log))
    partial.rename(task / f"step_{step}_log.json")


def write_task(run: Path, key: str, steps: int, seed: int = 0) -> None:
    """Write a task whose search found something better now and then."""
    draw, best = random.Random(f"{seed} {key}"), 0.6
    task = run / key
    write_step(task, 0)
    (task / "reference_src.py").write_text(REFERENCE)
    for step in range(1, steps + 1):
        parent = 0 if step == 1 or draw.random() < 0.15 else draw.randrange(max(1, step - 12), step)
        status = draw.choice(["passed", "passed", "compile", "wrong_value", "crash", "integrity"])
        best = best * 1.05 if draw.random() < 0.2 else best
        found = verdict(
            status, best * draw.uniform(0.5, 1.0) if status == "passed" else None, feedback=f"of {step}"
        )
        kind = "large_step" if parent == 0 else "small_step"
        write_step(task, step, found, parent=parent, kind=kind, context=(parent,) if parent else ())


def write_run(run: Path, tasks: int, steps: int) -> Path:
    """Write a run of equal tasks."""
    run.mkdir(parents=True, exist_ok=True)
    (run / "config.yaml").write_text(f"agent_type: MCTS\ntotal_steps: {steps}\n")
    for number in range(1, tasks + 1):
        write_task(run, f"2_{number}", steps)
    return run
