from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaexplore.cli.main import main
from tests.judge_server import PASSED, JudgeServer

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    """Make a run with verdicts of the dummy judge; one of its kernels passed."""
    run = tmp_path / "run"
    settings = ["server_type=offline", "dummy=true", "total_steps=4", f"save_path={run}"]
    flags = [part for setting in settings for part in ("--set", setting)]
    assert main(["run", "--task", str(PROBLEM), *flags]) == 0
    return run


def test_best_kernel_is_judged_again_beside_first_verdict(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    task = run_folder / "0_2_row_sum"
    recorded = (task / "global_best_metrics_4.json").read_text()
    with JudgeServer() as server:
        judge = ["dummy=false", "use_remote_eval=true", f"remote_eval_url={server.url}"]
        flags = [part for setting in judge for part in ("--set", setting)]
        assert main(["re-evaluate", str(run_folder), *flags]) == 0
        sent = [body["custom_model_src"] for path, body in server.requests if path == "/evaluate"]
    assert sent == [(task / "global_best_kernel_4.py").read_text()]
    again = json.loads((task / "global_best_metrics_re_evaluated.json").read_text())
    assert again["runtime_stats"] == PASSED["runtime_stats"]
    assert again["kernel_path"].startswith("step_")
    assert json.loads((task / "global_best_metrics_on_sf_4.json").read_text()) == again
    assert [entry["step"] for entry in json.loads((task / "step_best_curve.json").read_text())] == [
        1,
        2,
        3,
        4,
    ]
    assert (task / "global_best_metrics_4.json").read_text() == recorded
    assert "1.50x" in capsys.readouterr().out


def test_flags_are_below_the_table(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    evidence = [{"id": "stale_weights", "severity": "suspect", "evidence": "3 of 3"}]
    metadata = {
        "status": "passed", "tier": "strict", "integrity": ["stale_weights"], "integrity_evidence": evidence,
    }  # fmt: skip
    with JudgeServer(lambda _path, _body: (200, {**PASSED, "metadata": metadata}, {})) as server:
        judge = ["dummy=false", "use_remote_eval=true", f"remote_eval_url={server.url}", "tier=tf32"]
        flags = [part for setting in judge for part in ("--set", setting)]
        assert main(["re-evaluate", str(run_folder), *flags]) == 0
        assert [body["tier"] for _, body in server.requests] == ["tf32"]
    lines = capsys.readouterr().out.splitlines()
    assert "1.50x suspect" in "".join(lines)
    assert any(line.endswith("strict") for line in lines)
    assert lines[-1] == "0_2_row_sum: suspect: stale_weights (3 of 3)"


def test_out_belongs_to_saved_kernels(run_folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["re-evaluate", str(run_folder), "--out", "here"]) == 2
    assert "--tasks and --out to --saved DIR" in capsys.readouterr().err
