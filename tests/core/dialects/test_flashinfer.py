"""Definitions with their workloads as problem files."""

from __future__ import annotations

import json
import struct
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch

from adaexplore.core.dialects import flashinfer
from adaexplore.core.errors import TaskError

RUN = """
import torch

def make(axes, device):
    return {"index": torch.arange(axes["N"], device=device) % axes["K"]}

@torch.no_grad()
def run(x, index, eps):
    return {"total": x.sum(), "scaled": torch.cat([x, x], 1) * eps + index[:, None]}
"""
DEFINITION: dict[str, Any] = {
    "name": "scaled",
    "op_type": "test",
    "axes": {
        "N": {"type": "var"},
        "K2": {"type": "expr", "expression": "2 * K"},
        "K": {"type": "const", "value": 3},
    },
    "inputs": {
        "x": {"shape": ["N", "K"], "dtype": "float32"},
        "index": {"shape": ["N"], "dtype": "int64"},
        "eps": {"shape": None, "dtype": "float32"},
    },
    "outputs": {
        "scaled": {"shape": ["N", "K2"], "dtype": "float32"},
        "total": {"shape": [], "dtype": "float32"},
    },
    "custom_inputs_entrypoint": "make",
    "reference": RUN,
}
INPUTS = {"x": {"type": "random"}, "index": {"type": "custom"}, "eps": {"type": "scalar", "value": 0.5}}
WORKLOAD: dict[str, Any] = {"uuid": "a", "axes": {"N": 4}, "inputs": INPUTS}
DPS = """
import torch
def run(x, index, eps, scaled, total):
    assert scaled.shape == (4, 6) and total.shape == ()
    scaled.copy_(torch.cat([x, x], 1) * eps + index[:, None])
    total.copy_(x.sum())
"""


def sol(folder: Path, *workloads: dict[str, Any], **changes: Any) -> Path:
    """Write a definition of SOL-ExecBench; return the path of its file."""
    path = folder / "scaled" / "definition.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(DEFINITION | changes))
    path.with_name("workload.jsonl").write_text(
        "".join(json.dumps(w) + "\n" for w in workloads or [WORKLOAD])
    )
    return path


def source(path: Path, root: Path, data_bytes: int = 2**17) -> str:
    return flashinfer.problem_source(path.read_text(), path, root, data_bytes)


def load(text: str) -> Any:
    module = types.ModuleType("adapted")
    sys.modules["adapted"] = module
    exec(compile(text, "<adapted>", "exec"), module.__dict__)
    return module


def test_reference_gives_outputs_in_order(tmp_path: Path) -> None:
    problem = load(source(sol(tmp_path), tmp_path))
    (workload,) = problem.get_workloads()
    assert workload["name"] == "1 N=4"
    x, index, eps = workload["get_inputs"]()
    assert x.shape == (4, 3)
    assert index.tolist() == [0, 1, 2, 0]
    scaled, total = problem.Model()(x, index, eps)
    assert torch.equal(scaled, torch.cat([x, x], 1) * 0.5 + index[:, None])
    assert torch.equal(total, x.sum())


@pytest.mark.parametrize("code", [DPS, RUN])
def test_both_styles_of_candidates_run(tmp_path: Path, code: str) -> None:
    path = sol(tmp_path)
    problem = load(source(path, tmp_path))
    candidate = load(flashinfer.candidate_source(code, path.read_text(), path))
    given = problem.get_inputs()
    for got, want in zip(candidate.ModelNew()(*given), problem.Model()(*given), strict=True):
        assert torch.equal(got, want)


def test_solution_names_its_function_and_style(tmp_path: Path) -> None:
    path = sol(tmp_path)
    spec = {"language": "python", "target_hardware": ["H100"], "entry_point": "main.py::go"}
    solution = {"name": "s", "definition": "scaled", "author": "a", "spec": spec}
    solution["sources"] = [{"path": "main.py", "content": DPS.replace("def run", "def go")}]
    candidate = load(flashinfer.candidate_source(json.dumps(solution), path.read_text(), path))
    problem = load(source(path, tmp_path))
    assert candidate.ModelNew()(*problem.get_inputs())[0].shape == (4, 6)


def test_layout_of_a_trace_set_is_read(tmp_path: Path) -> None:
    path = tmp_path / "definitions" / "test" / "scaled.json"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(DEFINITION))
    file = tmp_path / "workloads" / "test" / "scaled.jsonl"
    file.parent.mkdir(parents=True)
    line = {"definition": "scaled", "workload": WORKLOAD, "solution": None, "evaluation": None}
    file.write_text(json.dumps(line) + "\n")
    assert flashinfer.definitions(tmp_path) == {"scaled": path}
    problem = load(source(path, tmp_path))
    assert problem.TOLERANCE["required_matched_ratio"] == 1.0
    assert problem.TOLERANCE["added"] is False


def test_second_folder_of_one_name_keeps_its_path(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        sol(tmp_path / folder)
    assert list(flashinfer.definitions(tmp_path)) == ["scaled", "b__scaled"]


def test_folders_without_workloads_are_left_out(tmp_path: Path) -> None:
    path = sol(tmp_path)
    empty = tmp_path / "a_empty"
    empty.mkdir()
    (empty / "definition.json").write_text(path.read_text())
    assert flashinfer.definitions(tmp_path) == {"scaled": path}


def stored(folder: Path, *values: int) -> dict[str, Any]:
    """Write a file with a tensor; return a workload that takes its index from it."""
    count = len(values)
    about = {"dtype": "I64", "shape": [count], "data_offsets": [0, 8 * count]}
    header = json.dumps({"kept": about}).encode()
    data = struct.pack(f"<{count}q", *values)
    (folder / f"{count}.safetensors").write_bytes(struct.pack("<Q", len(header)) + header + data)
    given = {"type": "safetensors", "path": f"{count}.safetensors", "tensor_key": "kept"}
    return {"uuid": "s", "axes": {"N": count}, "inputs": INPUTS | {"index": given}}


def test_stored_tensor_travels_in_the_text(tmp_path: Path) -> None:
    path = sol(tmp_path, stored(tmp_path, 2, 0, 1, 2))
    assert load(source(path, tmp_path)).get_inputs()[1].tolist() == [2, 0, 1, 2]


def test_workloads_with_too_much_data_are_left_out(tmp_path: Path) -> None:
    long = stored(tmp_path, *(number**3 for number in range(200)))
    path = sol(tmp_path, long, stored(tmp_path, 2, 0), stored(tmp_path, 2, 0, 1))
    names = [each["name"] for each in load(source(path, tmp_path, 200)).get_workloads()]
    assert names == ["2 N=2", "3 N=3"]
    assert "# without 2 of 3, whose data is too large" in source(path, tmp_path, 0)


def test_workloads_without_stored_tensors_are_all_kept(tmp_path: Path) -> None:
    path = sol(tmp_path, *[WORKLOAD] * 100)
    text = source(path, tmp_path, 0)
    assert len(load(text).get_workloads()) == 100
    assert "too large" not in text


def test_generated_input_follows_its_generator(tmp_path: Path) -> None:
    generator = {"type": "integer", "low": 0, "high": "K"}
    inputs = INPUTS | {"index": {"type": "generated", "generator": generator}}
    path = sol(tmp_path, WORKLOAD | {"axes": {"N": 200}, "inputs": inputs})
    index = load(source(path, tmp_path)).get_inputs()[1]
    assert set(index.tolist()) == {0, 1, 2}


def test_strictest_tolerance_of_the_workloads_counts(tmp_path: Path) -> None:
    loose = {"max_atol": 0.1, "max_rtol": 0.001, "required_matched_ratio": 0.9}
    strict = {"max_atol": 0.01, "max_rtol": 0.1, "required_matched_ratio": 0.95, "max_error_cap": 2.0}
    path = sol(tmp_path, WORKLOAD | {"tolerance": loose}, WORKLOAD | {"tolerance": strict})
    found = load(source(path, tmp_path)).TOLERANCE
    assert found == {
        "max_atol": 0.01,
        "max_rtol": 0.001,
        "required_matched_ratio": 0.95,
        "max_error_cap": 2.0,
        "added": True,
    }


def test_other_comparisons_leave_the_tiers(tmp_path: Path) -> None:
    checks = [{"type": "code_distance", "mode": "value", "output": "scaled", "max_distance": 1}]
    path = sol(tmp_path, WORKLOAD | {"checks": checks})
    assert not hasattr(load(source(path, tmp_path)), "TOLERANCE")


def axes(**changes: Any) -> dict[str, Any]:
    return {"axes": DEFINITION["axes"] | changes}


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"reference": "def go(): ..."}, "defines no function make, run"),
        ({"reference": "def (:"}, "definition.json: "),
        ({"outputs": {"x": {"shape": [], "dtype": "float32"}}}, "have one name"),
        ({"inputs": {"x": {"shape": ["M"], "dtype": "float32"}}}, "the axis 'M'"),
        ({"inputs": {"x": {"shape": ["N"], "dtype": "float3"}}}, "inputs.x.dtype"),
        ({"inputs": {"a b": {"shape": ["N"], "dtype": "bool"}}}, "'a b' cannot be the name"),
        (axes(K2={"type": "expr", "expression": "__import__('os')"}), "is not arithmetic"),
        (axes(K2={"type": "expr"}), "has an expression"),
    ],
)
def test_wrong_definition_is_one_line(tmp_path: Path, changes: dict[str, Any], said: str) -> None:
    path = sol(tmp_path, **changes)
    with pytest.raises(TaskError, match=said) as error:
        source(path, tmp_path)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("workload", "said"),
    [
        ({"axes": {}}, "no size for the axis N"),
        ({"inputs": INPUTS | {"x": {"type": "scalar"}}}, "jsonl:1: .*lacks a field"),
        ({"inputs": INPUTS | {"x": {"type": "safetensors", "path": "../x", "tensor_key": "k"}}}, "leads out"),
        (
            {"inputs": INPUTS | {"x": {"type": "safetensors", "path": "none", "tensor_key": "k"}}},
            "no safetensors file .*none; download",
        ),
    ],
)
def test_wrong_workload_is_one_line(tmp_path: Path, workload: dict[str, Any], said: str) -> None:
    path = sol(tmp_path, WORKLOAD | workload)
    with pytest.raises(TaskError, match=said):
        source(path, tmp_path)


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"language": "cuda"}, "only Python and Triton"), ({"entry_point": "main.py"}, "entry_point")],
)
def test_solution_that_is_not_judged_says_why(tmp_path: Path, changes: dict[str, str], said: str) -> None:
    path = sol(tmp_path)
    spec = {"language": "python", "target_hardware": ["H100"], "entry_point": "main.py::run"} | changes
    solution = {"name": "s", "definition": "scaled", "author": "a", "spec": spec}
    code = json.dumps(solution | {"sources": [{"path": "main.py", "content": "x"}]})
    with pytest.raises(TaskError, match=said):
        flashinfer.candidate_source(code, path.read_text(), path)
