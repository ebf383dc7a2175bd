from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main
from tests.judge_server import PASSED, Answer, JudgeServer, failed

PROBLEM = Path(__file__).parents[2] / "datasets/quickstart/level1/2_row_sum.py"
BROKEN = {**PASSED, "success": False, "correctness": False, "metadata": {}, "error": "zygote died"}
REFERENCE = {**BROKEN, "error": "Reference failed: boom"}


def judged(tmp_path: Path, answer: dict[str, Any], *flags: str, code: int = 200) -> int:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("class ModelNew: ...\n")

    def reply(_path: str, _body: dict[str, Any]) -> Answer:
        return code, answer, {}

    with JudgeServer(reply) as server:
        settings = ["--set", "use_remote_eval=true", "--set", f"remote_eval_url={server.url}"]
        return main(["eval", str(kernel), "--task", str(PROBLEM), *flags, *settings])


def test_correct_kernel_is_exit_code_0_with_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(tmp_path, PASSED, "--json") == 0
    printed = json.loads(capsys.readouterr().out)
    assert (printed["status"], printed["correctness"], printed["compiled"]) == ("passed", True, True)
    assert (printed["speedup"], printed["runtime"]) == (1.5, 1.0)


def test_gradients_are_judged_whatever_writer_is_configured(tmp_path: Path) -> None:
    assert judged(tmp_path, PASSED, "--set", "server_type=offline", "--set", "direction=both") == 0


def test_wrong_kernel_is_exit_code_1_with_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(tmp_path, failed("compile", feedback="line 3"), "--json") == 1
    printed = json.loads(capsys.readouterr().out)
    assert (printed["status"], printed["speedup"], printed["metadata"]["feedback"]) == (
        "compile",
        None,
        "line 3",
    )


@pytest.mark.parametrize(("answer", "code"), [(BROKEN, 200), (REFERENCE, 200), (PASSED, 501)])
def test_failing_judge_or_problem_is_exit_code_4(
    tmp_path: Path, answer: dict[str, Any], code: int, capsys: pytest.CaptureFixture[str]
) -> None:
    assert judged(tmp_path, answer, "--json", code=code) == 4
    assert capsys.readouterr().out == ""


def test_people_read_the_verdict_in_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judged(tmp_path, PASSED)
    judged(tmp_path, failed("compile", feedback="line 3"))
    assert capsys.readouterr().out == "passed: 1.500x (1 ms)\ncompile\nline 3\n"


def test_precision_interval_and_flags_with_evidence_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    flagged = {
        "status": "passed",
        "tier": "tf32",
        "integrity": ["no_own_kernel"],
        "integrity_evidence": [{"id": "no_own_kernel", "severity": "suspect", "evidence": "0 of 5 calls"}],
    }
    interval = {"ci_low": 1.4812, "ci_high": 1.52}
    reference = {"baseline_type": "measured", "baseline": "eager", "baseline_time": 1.5}
    stats = {"fast_p": 1.5, **interval, **reference}
    assert judged(tmp_path, {**PASSED, "metadata": flagged, "runtime_stats": stats}) == 0
    assert capsys.readouterr().out.splitlines() == [
        "passed: 1.500x, 95% interval 1.481 to 1.520 (1 ms, measured eager reference 1.5 ms)",
        "precision: tf32",
        "suspect: no_own_kernel (0 of 5 calls)",
    ]


def test_problem_flags_have_their_own_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = [{"id": "degenerate_problem", "evidence": "trivial answers pass: zeros"}]
    metadata = {
        "status": "passed",
        "problem_flags": ["degenerate_problem"],
        "problem_flags_evidence": told,
    }
    assert judged(tmp_path, {**PASSED, "metadata": metadata}) == 0
    assert capsys.readouterr().out.splitlines() == [
        "passed: 1.500x (1 ms)",
        "problem: degenerate_problem (trivial answers pass: zeros)",
    ]
    assert judged(tmp_path, {**PASSED, "metadata": metadata}, "--json") == 0
    assert json.loads(capsys.readouterr().out)["problem_flags"] == ["degenerate_problem"]


def test_rejected_kernel_is_exit_code_1_with_evidence(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    evidence = [{"id": "clock_mismatch", "severity": "reject", "evidence": "3.1x"}]
    rejected = failed("integrity", integrity=["clock_mismatch"], integrity_evidence=evidence, feedback="why")
    assert judged(tmp_path, rejected) == 1
    assert capsys.readouterr().out == "integrity\nreject: clock_mismatch (3.1x)\nwhy\n"


def test_tier_and_baseline_are_sent(tmp_path: Path) -> None:
    kernel = tmp_path / "kernel.py"
    kernel.write_text("class ModelNew: ...\n")
    with JudgeServer() as server:
        settings = ["use_remote_eval=true", f"remote_eval_url={server.url}", "baseline=compile"]
        flags = [part for setting in settings for part in ("--set", setting)]
        assert main(["eval", str(kernel), "--task", str(PROBLEM), *flags]) == 0
        ((_, body),) = server.requests
    assert (body["tier"], body["baseline"]) == ("strict", "compile")


def test_two_kernels_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.py").write_text("class ModelNew: ...\n")
    (tmp_path / "b.py").write_text("class ModelNew: pass\n")
    speeds = {"class ModelNew: ...\n": 3.0, "class ModelNew: pass\n": 1.5}

    def reply(_path: str, body: dict[str, Any]) -> Answer:
        stats = {"fast_p": speeds[body["custom_model_src"]]}
        return 200, {**PASSED, "runtime_stats": stats}, {}

    with JudgeServer(reply) as server:
        command = ["eval", str(tmp_path / "a.py"), str(tmp_path / "b.py"), "--task", str(PROBLEM)]
        assert main([*command, "--judge", server.url]) == 0
        told = capsys.readouterr().out
        assert main([*command, "--judge", server.url, "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
    assert told.splitlines()[-1] == f"{tmp_path}/a.py is 2.000x as fast as {tmp_path}/b.py"
    assert [kernel["speedup"] for kernel in found["kernels"]] == [3.0, 1.5]
    assert found["race"] == {"ratio": 2.0, "ci_low": None, "ci_high": None}
    assert main(["eval", "a", "b", "c", "--task", str(PROBLEM)]) == 2
