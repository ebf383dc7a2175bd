from __future__ import annotations

import json
import threading
import time
from pathlib import Path
from typing import Any

import pytest

from adaexplore.cli.main import main
from adaexplore.judge_client.baselines import summary
from tests import judge_server
from tests.judge_server import PASSED, Answer, JudgeServer, failed

PROBLEM = """
class Model:
    pass

def get_inputs():
    return []

def get_init_inputs():
    return []
"""
ROUNDS = [[2.0, 2.2], [2.4, 2.6], [3.0, 2.8]]
CLOCKS = {"before": {"sm_mhz": 1980}, "after": {"sm_mhz": 1980}}
STATS = {
    "mean": 9.0, "fast_p": 1.0, "hardware": "NVIDIA Test", "device": "0", "clocks": CLOCKS,
    "baseline_samples": ROUNDS,
}  # fmt: skip


@pytest.fixture
def problems(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write three problems of one level in KernelBench's layout; let the judge report a GPU."""
    gpu = {**judge_server.HEALTH, "cuda_available": True, "judge_device": "cuda", "hardware": "NVIDIA Test"}
    monkeypatch.setattr(judge_server, "HEALTH", gpu)
    folder = tmp_path / "bench" / "level1"
    folder.mkdir(parents=True)
    for name in ("1_one.py", "2_two.py", "3_three.py"):
        (folder / name).write_text(f"{PROBLEM}# {name}\n")
    monkeypatch.setenv("KERNELBENCH_ROOT", str(folder.parent))
    return folder


def call(problems: Path, url: str, *settings: str, tasks: str = "1\n") -> int:
    listed = problems.parents[1] / "list.txt"
    listed.write_text(tasks)
    chosen = [f"test_list_path={listed}", "use_remote_eval=true", f"remote_eval_url={url}", *settings]
    flags = [part for setting in chosen for part in ("--set", setting)]
    return main(["baseline", "--out", str(problems.parents[1] / "timing"), *flags])


def record(problems: Path, name: str = "baseline_time_torch") -> dict[str, Any]:
    path = problems.parents[1] / f"timing/NVIDIA Test/{name}.json"
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def timed(_path: str, body: dict[str, Any]) -> Answer:
    assert body["samples"] is True
    assert body["num_correct_trials"] == 1
    return 200, {**PASSED, "runtime_stats": STATS}, {}


def test_references_are_timed_as_their_own_candidates(problems: Path) -> None:
    with JudgeServer(timed) as server:
        assert call(problems, server.url) == 0
        assert all(body["custom_model_src"].endswith("\n\nModelNew = Model\n") for _, body in server.requests)
    found = record(problems)
    assert set(found["level1"]) == {"1_one.py", "2_two.py", "3_three.py"}
    entry = found["level1"]["1_one.py"]
    assert entry["mean"] == pytest.approx(2.5)
    assert (entry["min"], entry["max"], entry["num_trials"]) == (2.0, 3.0, 6)
    assert entry["ci_low"] < entry["mean"] < entry["ci_high"]
    assert (entry["hardware"], entry["device"], entry["clocks"]) == ("NVIDIA Test", "0", CLOCKS)
    assert entry["samples"] == ROUNDS
    assert (entry["baseline"], entry["dtype"], entry["versions"]) == ("eager", "native", {"triton": "0"})
    coverage = found["coverage"]["level1"]
    assert coverage == {"timed": 3, "problems": 3, "complete": True, "failed": {}}


def test_partial_table_says_so_and_is_continued(problems: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(timed) as server:
        assert call(problems, server.url, tasks="1 1-2\n") == 0
        assert "Level 1 is partial: 2 of 3 problems have a time." in capsys.readouterr().out
        assert record(problems)["coverage"]["level1"]["complete"] is False
        assert call(problems, server.url) == 0
        assert [body["problem_id"] for _, body in server.requests[2:]] == ["3"]
        assert "is partial" not in capsys.readouterr().out
        (problems / "2_two.py").write_text(PROBLEM)  # another reference is timed again
        assert call(problems, server.url) == 0
        assert [body["problem_id"] for _, body in server.requests[3:]] == ["2"]


def test_untimed_reference_is_listed(problems: Path) -> None:
    def fails(path: str, body: dict[str, Any]) -> Answer:
        if body["problem_id"] == "2":
            return 200, {**PASSED, "success": False, "metadata": {}, "error": "Reference failed: no"}, {}
        return timed(path, body)

    with JudgeServer(fails) as server:
        assert call(problems, server.url) == 4
    coverage = record(problems)["coverage"]["level1"]
    assert (coverage["timed"], coverage["complete"]) == (2, False)
    assert coverage["failed"]["2_two.py"] == "Reference failed: no"
    with JudgeServer(timed) as server:
        assert call(problems, server.url) == 0
    assert record(problems)["coverage"]["level1"]["failed"] == {}


@pytest.mark.parametrize(("without_ms", "steady"), [(2.0, False), (2.2, True), (2.85, True), (2.9, False)])
def test_time_that_varies_is_not_recorded(problems: Path, without_ms: float, steady: bool) -> None:
    """The median is 2.5 ms."""

    def varies(path: str, body: dict[str, Any]) -> Answer:
        return 200, {**PASSED, "runtime_stats": {**STATS, "baseline_clean_ms": without_ms}}, {}

    with JudgeServer(varies) as server:
        assert call(problems, server.url) == (0 if steady else 4)
    found = record(problems)
    assert found["coverage"]["level1"]["timed"] == (3 if steady else 0)
    if not steady:
        reason = found["coverage"]["level1"]["failed"]["1_one.py"]
        assert reason.startswith(
            f"its time varies, 2.5 ms, and {without_ms:.4g} ms with nobody else around; run"
        )
    with JudgeServer(timed) as server:
        assert call(problems, server.url) == 0
        assert len(server.requests) == (0 if steady else 3)


def test_recorded_time_that_varies_is_measured_again(problems: Path) -> None:
    with JudgeServer(timed) as server:
        assert call(problems, server.url) == 0
        path = problems.parents[1] / "timing/NVIDIA Test/baseline_time_torch.json"
        found = record(problems)
        found["level1"]["2_two.py"]["baseline_clean_ms"] = 1.0
        path.write_text(json.dumps(found))
        assert call(problems, server.url) == 0
        assert [body["problem_id"] for _, body in server.requests[3:]] == ["2"]


@pytest.mark.parametrize(
    ("status", "metadata", "reason"),
    [
        (
            "integrity",
            {
                "integrity": ["clock_mismatch"],
                "integrity_evidence": [
                    {"id": "clock_mismatch", "severity": "reject", "evidence": "0.1 ms a call"}
                ],
            },
            "clock_mismatch (0.1 ms a call)",
        ),
        (
            "wrong_value",
            {"feedback": "wrong_value: 3 of 4 elements\nNext: check"},
            "wrong_value: 3 of 4 elements",
        ),
        ("timeout", {}, "timeout"),
    ],
)
def test_record_says_why_a_reference_does_not_pass(
    problems: Path, status: str, metadata: dict[str, Any], reason: str
) -> None:
    with JudgeServer(lambda path, body: (200, failed(status, **metadata), {})) as server:
        assert call(problems, server.url, tasks="1 1\n") == 4
    failures = record(problems)["coverage"]["level1"]["failed"]
    assert failures == {"1_one.py": f"the reference does not pass itself: {reason}"}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("compile", "baseline_time_torch_compile_inductor_default"),
        ("max-autotune", "baseline_time_torch_compile_inductor_max-autotune"),
    ],
)
def test_compiled_references_have_their_own_table(problems: Path, kind: str, name: str) -> None:
    with JudgeServer(timed) as server:
        assert call(problems, server.url, f"baseline={kind}") == 0
        assert {body["baseline"] for _, body in server.requests} == {kind}
    assert record(problems, name)["level1"]["1_one.py"]["baseline"] == kind


@pytest.mark.parametrize(("kind", "most"), [("compile", 2), ("max-autotune", 1)])
def test_max_autotune_has_the_gpu_to_itself(problems: Path, kind: str, most: int) -> None:
    lock, running, seen = threading.Lock(), [0], [0]

    def answer(path: str, body: dict[str, Any]) -> Answer:
        with lock:
            running[0] += 1
            seen[0] = max(seen[0], running[0])
        time.sleep(0.3)  # the other one arrives meanwhile
        with lock:
            running[0] -= 1
        return timed(path, body)

    with JudgeServer(answer) as server:
        settings = (f"baseline={kind}", "num_processes=2")
        assert call(problems, server.url, *settings, tasks="1 1\n1 2\n") == 0
    assert seen == [most]


def test_other_sets_do_not_mix_with_kernelbench(problems: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNELBENCH_ROOT")
    with JudgeServer(timed) as server:
        assert call(problems, server.url, f"problem_root={problems.parent}") == 0
    assert len(record(problems, "baseline_time_torch-bench")["level1"]) == 3


def test_times_of_two_gpus_do_not_mix(
    problems: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with JudgeServer(timed) as server:
        assert call(problems, server.url, "gpu_name=NVIDIA Test", tasks="1 1\n") == 0
        before = record(problems)
        other = {**judge_server.HEALTH, "hardware": "NVIDIA Other"}
        monkeypatch.setattr(judge_server, "HEALTH", other)
        assert call(problems, server.url, "gpu_name=NVIDIA Test") == 2
    assert "has times of NVIDIA Test, and the judge's GPU is NVIDIA Other" in capsys.readouterr().err
    assert record(problems) == before


def test_time_on_a_busy_gpu_is_not_recorded(problems: Path, caplog: pytest.LogCaptureFixture) -> None:
    evidence = [{"id": "baseline_unconfirmed", "severity": "note", "evidence": "busy"}]
    metadata = PASSED["metadata"] | {"integrity": ["baseline_unconfirmed"], "integrity_evidence": evidence}
    busy = {**PASSED, "metadata": metadata, "runtime_stats": STATS}
    with JudgeServer(lambda _path, _body: (200, busy, {})) as server:
        assert call(problems, server.url, tasks="1 1\n") == 4
    assert "the GPU was not free" in caplog.text
    assert record(problems)["level1"] == {}


def test_judge_without_samples_is_refused(problems: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with JudgeServer(lambda _path, _body: (200, PASSED, {})) as server:
        assert call(problems, server.url) == 4
    assert "does not send the timed calls" in capsys.readouterr().err


def test_without_a_gpu_nothing_is_recorded(
    problems: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    cpu = {**judge_server.HEALTH, "cuda_available": False, "judge_device": "cpu"}
    monkeypatch.setattr(judge_server, "HEALTH", cpu)
    with JudgeServer() as server:
        assert call(problems, server.url) == 2
    assert "need a GPU" in capsys.readouterr().err


def test_summary_leaves_out_outliers_in_the_mean() -> None:
    found = summary([[1.0] * 19 + [100.0], [1.0] * 19 + [0.5]])
    assert found["mean"] == 1.0
    assert found["std"] == 0.0
    assert (found["min"], found["max"], found["median"], found["p10"], found["p90"]) == (0.5, 100, 1, 1, 1)
    assert (found["ci_low"], found["ci_high"]) == (1.0, 1.0)
    one = summary([[2.0]])
    assert (one["mean"], one["std"], one["p10"], one["ci_low"]) == (2.0, 0.0, 2.0, 2.0)
