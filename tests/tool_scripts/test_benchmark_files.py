"""Candidates for benchmarks, and solutions and traces for FlashInfer-Bench."""

from __future__ import annotations

import json
import math
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from adaexplore.core.dialects.catalogue import Benchmark, Source
from adaexplore.core.dialects.schema import Input, Solution, Workload
from adaexplore.core.judging.status import Status
from adaexplore.core.verdict import Verdict
from tests.verdicts import make_verdict
from tool_scripts import benchmark_files
from tool_scripts.benchmark_files import candidate, judged_workloads

WORKLOADS = [Workload(uuid=name, axes={"N": 2}, inputs={"x": Input(type="random")}) for name in "ab"]
JUDGED = {"weight": 1.0, "correctness": True}
TIMED = {**JUDGED, "name": "1 N=2", "status": "passed", "gpu_ms": 0.5, "baseline_gpu_ms": 2.0}


def written(found: Verdict) -> list[dict[str, Any]]:
    return [json.loads(line) for line in benchmark_files.of_verdict("scaled", "mine", WORKLOADS, found)]


def test_each_workload_has_a_trace() -> None:
    wrong = {**JUDGED, "name": "2 N=2", "status": "wrong_value", "correctness": False}
    found = make_verdict(
        status=Status.WRONG_VALUE, metadata={"workloads": [TIMED, wrong], "hardware": "H100"}
    )
    first, second = written(found)
    evaluation = first["evaluation"]
    assert (evaluation["status"], evaluation["performance"]["speedup_factor"]) == ("PASSED", 4.0)
    assert all(map(math.isnan, evaluation["correctness"].values()))
    assert first["workload"] == {"uuid": "a", "axes": {"N": 2}, "inputs": {"x": {"type": "random"}}}
    assert second["workload"]["uuid"] == "b"
    assert second["evaluation"]["status"] == "INCORRECT_NUMERICAL"
    assert "correctness" in second["evaluation"]
    assert "performance" not in second["evaluation"]


def test_passed_without_times_has_no_trace() -> None:
    assert written(Verdict(status=Status.PASSED)) == []


@pytest.mark.parametrize(
    ("status", "name"),
    [(Status.SYNTAX, "COMPILE_ERROR"), (Status.CRASH, "RUNTIME_ERROR"), (Status.TIMEOUT, "TIMEOUT")],
)
def test_failure_has_neither_times_nor_deviations(status: Status, name: str) -> None:
    (trace,) = written(Verdict(status=status))
    assert trace["evaluation"]["status"] == name
    assert not {"correctness", "performance"} & trace["evaluation"].keys()


def test_solution_for_sol_execbench_names_languages() -> None:
    text = benchmark_files.solution("scaled", "mine", "x", None, in_place=False)
    spec = json.loads(text)["spec"]
    assert (spec["languages"], spec["target_hardware"]) == (["pytorch"], ["LOCAL"])
    assert "language" not in spec


def test_solution_reads_back() -> None:
    text = benchmark_files.solution("scaled", "mine", "import triton\n", "H100", in_place=True)
    solution = Solution.model_validate_json(text)
    assert solution.spec.language == "triton"
    assert json.loads(text)["sources"] == [{"path": "main.py", "content": "import triton\n"}]


TRITONBENCH = (
    """
import torch

def scaled(x, out):
    out.copy_(x * 3)
    return out + 1, 2.0
"""
    + "#" * 146
    + "\nscaled(torch.ones(4), torch.ones(4))\n"
)


def loaded(source: str) -> Any:
    module = types.ModuleType("problem")
    exec(source, module.__dict__)
    return module


def benchmark(source: Source, path: Path) -> Benchmark:
    return Benchmark(source, path.parent, {"scaled": path})


def test_reference_of_a_file_is_its_implementation(tmp_path: Path) -> None:
    found = candidate(benchmark("TBG", tmp_path / "scaled.py"), "scaled", TRITONBENCH, "reference")
    assert found == TRITONBENCH.partition("#")[0]


def test_zeros_are_returned_and_written(tmp_path: Path) -> None:
    zeros = candidate(benchmark("TBG", tmp_path / "scaled.py"), "scaled", TRITONBENCH, "zeros")
    x, out = torch.ones(4), torch.ones(4)
    result, number = loaded(zeros).scaled(x, out)
    assert (result.tolist(), number, out.tolist(), x.tolist()) == ([0.0] * 4, 0.0, [0.0] * 4, [1.0] * 4)


def definition(folder: Path, *counts: int) -> Path:
    """Write a definition with a workload of so many stored numbers each."""
    workloads = []
    for count in counts:
        save_file({"kept": torch.arange(count) ** 5}, folder / f"{count}.safetensors")
        given = {"type": "safetensors", "path": f"{count}.safetensors", "tensor_key": "kept"}
        workloads.append({"uuid": f"of {count}", "axes": {"N": count}, "inputs": {"x": given}})
    tensor = {"shape": ["N"], "dtype": "int64"}
    text = {
        "name": "scaled",
        "axes": {"N": {"type": "var"}},
        "inputs": {"x": tensor},
        "outputs": {"y": tensor},
        "reference": "def run(x):\n    return x * 3\n",
    }
    path = folder / "definition.json"
    path.write_text(json.dumps(text))
    path.with_name("workload.jsonl").write_text("".join(f"{json.dumps(each)}\n" for each in workloads))
    return path


def test_zeros_fill_all_outputs(tmp_path: Path) -> None:
    path = definition(tmp_path, 4)
    module = loaded(candidate(benchmark("FIT", path), "scaled", path.read_text(), "zeros"))
    y = torch.ones(4)
    module.run(torch.ones(4), y)
    assert not y.any()


def test_single_verdict_belongs_to_the_smallest_workload(tmp_path: Path) -> None:
    of = benchmark("FIT", definition(tmp_path, 60, 7, 90))
    assert "lambda: [_fi_stored([7]" in of.problem("scaled", data_bytes=1)
    alone = judged_workloads(of, "scaled", Verdict(status=Status.PASSED))
    assert [each.uuid for each in alone] == ["of 7"]
    listed = make_verdict(status=Status.PASSED, metadata={"workloads": [TIMED]})
    assert len(judged_workloads(of, "scaled", listed)) == 3
