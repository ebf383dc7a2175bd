"""The script that judges whole benchmarks."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from adaexplore.core.judging.status import Status
from adaexplore.core.metrics import to_metrics
from adaexplore.core.wire import EvaluationRequest
from tests.judge_server import PASSED, JudgeServer
from tests.verdicts import make_verdict
from tool_scripts import judge_benchmark
from tool_scripts.judge_benchmark import summary

FILE = "def {name}(x):\n    return x\n" + "#" * 146 + "\nprint({name}(1))\n"


def line(task: str, status: str = "passed", **values: Any) -> dict[str, Any]:
    given = {"task": task, "candidate": "reference", "status": status, "error": None, "prints": False}
    if status != "error":
        given |= {"correct": status == "passed", "flags": [], "problem_flags": [], "speedup": None}
        given |= {"metrics": metrics(status)}
    return given | values


def metrics(status: str = "passed", workloads: Sequence[dict[str, Any]] = ()) -> dict[str, Any]:
    judged = {"name": "call", "weight": 1.0, "status": "passed", "correctness": True}
    return to_metrics(make_verdict(Status(status), {"workloads": [judged | each for each in workloads]}))


def test_silent_tests_accept_every_running_candidate() -> None:
    found = summary(
        [
            line("a"),
            line("b", "wrong_value"),
            line("c", "wrong_value", prints=True),
            line("d", "launch"),
            line("e", "error", error="no test"),
        ]
    )
    assert (found["call_accuracy"], found["execution_accuracy"], found["right_outputs"]) == (0.6, 0.4, 0.2)
    assert found["exceptions"] == {"b": "wrong_value", "c": "wrong_value", "d": "launch", "e": "no test"}


def test_call_accuracy_needs_every_call() -> None:
    calls = metrics("wrong_value", [{"status": status} for status in ("wrong_value", "launch")])
    assert summary([line("a", "wrong_value", metrics=calls)])["call_accuracy"] == 0


def test_stricter_figures_leave_flagged_kernels_out() -> None:
    timed = [{"gpu_ms": 1.0, "baseline_gpu_ms": 1.0}, {"gpu_ms": 1.0, "baseline_gpu_ms": 5.0}]
    found = summary(
        [
            line("a", speedup=2.0, metrics=metrics(workloads=timed)),
            line("b", speedup=8.0, flags=["no_own_kernel"]),
            line("c", speedup=50.0),
        ]
    )
    assert found["speedup"] == 5.5  # the mean of (1 + 5) / (1 + 1) and 8; 50 is not plausible
    assert found["speedup_unflagged"] == 10.0
    assert found["right_outputs_unflagged"] == round(2 / 3, 4)


def test_second_run_judges_only_what_is_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("add", "sub"):
        (tmp_path / f"{name}.py").write_text(FILE.format(name=name))
    out = tmp_path / "out.jsonl"
    out.write_text(json.dumps(line("add")) + "\n" + '{"task": ')
    with JudgeServer() as server:
        words = ["TBT", str(tmp_path), "--out", str(out), "--judge", server.url]
        assert judge_benchmark.main(words) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["tasks"], found["right_outputs"]) == (2, 1.0)
    assert [(path, body["task_id"]) for path, body in server.requests] == [("/evaluate_tbt_kernel", "sub")]


def test_busy_judge_ends_the_run_without_a_line(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "add.py").write_text(FILE.format(name="add"))
    out = tmp_path / "out.jsonl"
    with JudgeServer(lambda *_: (503, {"detail": "queue full"}, {})) as server:
        words = ["TBT", str(tmp_path), "--out", str(out), "--judge", server.url]
        assert judge_benchmark.main(words) == 4
    assert "queue full; the same command continues" in caplog.text
    assert not out.exists()


def test_own_judge_keeps_hidden_inputs_across_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    @contextlib.contextmanager
    def running_judge(*given: object, **environment: str) -> Iterator[str]:
        secrets.append(environment.get("ADAEXPLORE_JUDGE_SECRET", ""))
        yield server.url

    secrets: list[str] = []
    monkeypatch.setattr(judge_benchmark, "running_judge", running_judge)
    (tmp_path / "add.py").write_text(FILE.format(name="add"))
    with JudgeServer() as server:
        for out in ("one.jsonl", "two.jsonl"):
            assert judge_benchmark.main(["TBT", str(tmp_path), "--out", str(tmp_path / out)]) == 0
    assert secrets[0]
    assert secrets[0] == secrets[1]


@pytest.mark.parametrize(
    ("end", "prints"), [("# print(r)", False), ("r = 'print(1)'", False), ("print (1)", True)]
)
def test_only_a_call_of_print_counts(tmp_path: Path, end: str, prints: bool) -> None:
    (tmp_path / "add.py").write_text(FILE.format(name="add").replace("print(add(1))", f"add(1)\n{end}"))
    out = tmp_path / "out.jsonl"
    with JudgeServer() as server:
        assert judge_benchmark.main(["TBT", str(tmp_path), "--out", str(out), "--judge", server.url]) == 0
    assert json.loads(out.read_text())["prints"] is prints


def test_file_of_another_candidate_is_refused(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "add.py").write_text(FILE.format(name="add"))
    out = tmp_path / "out.jsonl"
    out.write_text(json.dumps(line("add")) + "\n")
    assert judge_benchmark.main(["TBT", str(tmp_path), "--out", str(out), "--candidate", "zeros"]) == 2
    assert "out.jsonl holds results of the candidate reference; give another --out for zeros" in caplog.text


def definition(folder: Path) -> None:
    """Write the definition ``scaled`` into a folder of another name."""
    tensor = {"shape": ["N"], "dtype": "float32"}
    text = {
        "name": "scaled",
        "axes": {"N": {"type": "var"}},
        "inputs": {"x": tensor},
        "outputs": {"y": tensor},
    }
    workload = {"uuid": "a", "axes": {"N": 4}, "inputs": {"x": {"type": "random"}}}
    (folder / "001_scaled").mkdir(parents=True)
    path = folder / "001_scaled" / "definition.json"
    path.write_text(json.dumps(text | {"reference": "def run(x):\n    return x * 3\n"}))
    path.with_name("workload.jsonl").write_text(json.dumps(workload))


def test_mlsys_tasks_name_their_source(tmp_path: Path) -> None:
    definition(tmp_path / "tasks")
    with JudgeServer() as server:
        words = ["MLSYS", str(tmp_path / "tasks"), "--out", str(tmp_path / "out"), "--judge", server.url]
        assert judge_benchmark.main(words) == 0
    ((path, body),) = server.requests
    assert (path, body["test_source"], body["task_id"]) == ("/evaluate", "MLSYS", "001_scaled")
    EvaluationRequest.model_validate(body)


def test_traces_name_the_definition_and_times_that_count(tmp_path: Path) -> None:
    definition(tmp_path / "tasks")
    timed = {"name": "1 N=4", "status": "passed", "gpu_ms": 1.0, "baseline_gpu_ms": 9.0}
    timed |= {"score_ms": 2.0, "baseline_ms": 6.0, "weight": 1.0, "correctness": True}
    answer = {**PASSED, "metadata": {"status": "passed", "workloads": [timed]}}
    with JudgeServer(lambda *_: (200, answer, {})) as server:
        words = ["FIT", str(tmp_path / "tasks"), "--out", str(tmp_path / "out"), "--judge", server.url]
        assert judge_benchmark.main([*words, "--traces", str(tmp_path / "traces")]) == 0
    solution = json.loads((tmp_path / "traces/solutions/001_scaled.json").read_text())
    trace = json.loads((tmp_path / "traces/traces/001_scaled.jsonl").read_text())
    assert solution["definition"] == trace["definition"] == "scaled"
    assert solution["name"] == trace["solution"]
    assert trace["evaluation"]["performance"]["speedup_factor"] == 3.0


def test_speedup_uses_times_that_count() -> None:
    timed = {"gpu_ms": 1.0, "baseline_gpu_ms": 9.0, "score_ms": 2.0, "baseline_ms": 6.0}
    assert summary([line("a", speedup=3.0, metrics=metrics(workloads=[timed]))])["speedup"] == 3.0
