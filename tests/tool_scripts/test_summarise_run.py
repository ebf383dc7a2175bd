"""The kept summary says what was found, with what, and when; it reads only."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.errors import RecordError
from tool_scripts.summarise_run import main, summarise

DAY = date(2031, 2, 3)
TIMED = {"mean": 2.0, "std": 0.25, "fast_p": 1.5, "baseline_time": 3.0}


def _step(folder: Path, step: int, stats: dict[str, Any], status: str, *, evaluated: bool = True) -> None:
    correct = status == "passed"
    metrics = {
        "compiled": status not in ("syntax", "load"),
        "correctness": correct,
        "metadata": {"status": status},
        "runtime": stats.get("mean", -1.0),
        "runtime_stats": stats,
    }
    log = {"node_id": step, "created_by": "large_step" if step else "dummy_root", "evaluated": evaluated}
    (folder / f"step_{step}_metrics.json").write_text(json.dumps(metrics))
    (folder / f"step_{step}_log.json").write_text(json.dumps(log))


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """2_3: wrong, 1.2x, 1.5x, 1.5x again; 2_10: correct under the interpreter; 3_1 not run."""
    folder = tmp_path / "run"
    for key in ("2_3", "2_10", "3_1"):
        (folder / key).mkdir(parents=True)
        (folder / key / "reference_src.py").write_text("")
    _step(folder / "2_3", 0, {}, "compile", evaluated=False)
    _step(folder / "2_3", 1, {}, "wrong_value")
    _step(folder / "2_3", 2, {**TIMED, "mean": 2.5, "fast_p": 1.2}, "passed")
    _step(folder / "2_3", 3, TIMED, "passed")
    _step(folder / "2_3", 4, TIMED, "passed", evaluated=False)
    _step(folder / "2_10", 0, {}, "compile", evaluated=False)
    _step(folder / "2_10", 1, {"fast_p": 1.0, "timing": "interpreter", "std": 9.0}, "passed")
    failure = {"error_type": "ProblemError", "message": "too large"}
    (folder / "3_1" / "task_failure.json").write_text(json.dumps(failure))
    (folder / "environment.json").write_text('{"format": 1, "seed": 7, "judge": {"hardware": "A GPU"}}')
    (folder / "config.yaml").write_text(
        "preset: default\nserver_type: offline\ntf32: off\nseed: 7\nsave_path: elsewhere/run\n"
    )
    return folder


def test_task_shows_outcomes_and_best_kernel_times(run):
    task = summarise(run, "go", DAY)["tasks"][0]
    assert task["task"] == "2_3"
    assert list(task["outcomes"].items()) == [("passed", 3), ("wrong_value", 1)]
    assert task["judged_steps"] == 3
    assert (task["first_correct_step"], task["best_step"]) == (2, 3)
    times = (task["runtime_ms"], task["runtime_std_ms"], task["baseline_ms"])
    assert (task["best_speedup"], *times) == (1.5, 2.0, 0.25, 3.0)


def test_interpreted_kernels_have_no_times(run):
    task = summarise(run, "go", DAY)["tasks"][1]
    assert (task["task"], task["first_correct_step"], task["best_step"]) == ("2_10", 1, 1)
    assert {task["best_speedup"], task["runtime_ms"], task["runtime_std_ms"], task["baseline_ms"]} == {None}


def test_task_that_failed_to_run_says_why(run):
    task = summarise(run, "go", DAY)["tasks"][2]
    assert (task["task"], task["outcomes"], task["failure"]) == ("3_1", {}, "too large")
    assert task["first_correct_step"] is None


def test_figures_come_with_hardware_settings_command_and_date(run):
    summary = summarise(run, "adaexplore run", DAY, "a note")
    assert summary["environment"]["judge"] == {"hardware": "A GPU"}
    assert (summary["date"], summary["command"], summary["note"]) == (
        DAY.isoformat(),
        "adaexplore run",
        "a note",
    )
    assert summary["statistics"]["tasks"] == 3
    assert summary["statistics"]["correct"] == 2
    assert "per_task" not in summary["statistics"]
    assert summary["config"] is not None
    assert (summary["config"]["tf32"], summary["config"]["p_large"], summary["config"]["seed"]) == (
        "off",
        0.2,
        7,
    )
    assert "model_name" not in summary["config"]
    assert "save_path" not in summary["config"]


def test_summary_names_the_model_that_was_used(run):
    (run / "config.yaml").write_text("server_type: openai\nmodel_name: some-model\n")
    config = summarise(run, "go", DAY)["config"]
    assert config is not None
    assert config["model_name"] == "some-model"


def test_a_run_of_the_release_has_no_settings(run):
    (run / "config.yaml").unlink()
    assert summarise(run, "go", DAY)["config"] is None


def test_command_writes_json_and_leaves_run_unchanged(run, tmp_path):
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    out = tmp_path / "kept" / "summary.json"
    assert main([str(run), "--command", "go", "--out", str(out)]) == 0
    data = json.loads(out.read_text())
    assert [task["task"] for task in data["tasks"]] == ["2_3", "2_10", "3_1"]
    assert date.fromisoformat(data["date"])
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before


def test_missing_run_folder_gives_exit_code_2(tmp_path, caplog):
    with pytest.raises(RecordError):
        summarise(tmp_path / "none", "go", DAY)
    assert main([str(tmp_path / "none"), "--command", "go", "--out", str(tmp_path / "out.json")]) == 2
    assert "is not a folder" in caplog.text
    assert not (tmp_path / "out.json").exists()
