"""On trajectories recorded by the release, the best at each step is the one that it recorded."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaexplore.records.task_records import TaskRecords
from adaexplore.report.statistics import run_results, run_statistics

TRACES = sorted((Path(__file__).parents[3] / "shared" / "data" / "traces").glob("*.json"))


@pytest.mark.skipif(not TRACES, reason="the recorded trajectories are not beside the repository")
@pytest.mark.parametrize("path", TRACES[:2], ids=lambda path: path.stem)
def test_best_at_each_step_matches_the_recording(tmp_path, path):
    trace = json.loads(path.read_text())
    folder = tmp_path / Path(trace["run_dir"]).name
    folder.mkdir()
    for step in trace["steps"]:
        score = step["score"]
        metrics = {
            "compiled": score["compiled"],
            "correctness": score["correct"],
            "metadata": {"hardware": step["hardware"]},
            "runtime": step["runtime_us"],
            "runtime_stats": {"fast_p": score["fast_p"]} if score["correct"] else {},
        }
        log = {key: step[key] for key in step if key not in {"code", "error", "prompt", "hardware"}} | {
            "score": list(score.values()),
            "total_nodes": step["step"] + 1,
            "global_best_score": [1, 1, step["global_best_fast_p"]],
        }
        (folder / f"step_{step['step']}.py").write_text(step["code"])
        (folder / f"step_{step['step']}_metrics.json").write_text(json.dumps(metrics))
        (folder / f"step_{step['step']}_log.json").write_text(json.dumps(log))
    (result,) = run_results(tmp_path)
    recorded = trace["steps"][1:]
    assert len(result.curve) == len(recorded)
    for best, step in zip(result.curve, recorded, strict=True):
        if best.correct:
            assert (best.step, best.speedup) == (step["global_best_node_id"], step["global_best_fast_p"])
    assert result.best.correct
    assert run_statistics(tmp_path, 50).per_task[0].speedup == recorded[49]["global_best_fast_p"]
    records = TaskRecords(folder, "MCTS").steps()
    assert [record.node.plan.parent_id for record in records[1:]] == [
        step["parent_node_id"] for step in recorded
    ]
    assert [record.draft.source for record in records[1:]] == [step["code"] for step in recorded]
