"""Definitions with their workloads as problem files."""

from __future__ import annotations

import json
import sys
import types
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

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


def test_inputs_follow_the_order_of_run(tmp_path: Path) -> None:
    """Some definitions of FlashInfer-Bench list their inputs in another order."""
    other = {name: DEFINITION["inputs"][name] for name in ("eps", "index", "x")}
    path = sol(tmp_path, inputs=other)
    problem = load(source(path, tmp_path))
    x, index, eps = given = problem.get_inputs()
    candidate = load(flashinfer.candidate_source(DPS, path.read_text(), path, tmp_path))
    for module in (problem.Model(), candidate.ModelNew()):
        assert torch.equal(module(*given)[0], torch.cat([x, x], 1) * eps + index[:, None])


@pytest.mark.parametrize("code", [DPS, RUN])
def test_both_styles_of_candidates_run(tmp_path: Path, code: str) -> None:
    path = sol(tmp_path)
    problem = load(source(path, tmp_path))
    candidate = load(flashinfer.candidate_source(code, path.read_text(), path, tmp_path))
    given = problem.get_inputs()
    for got, want in zip(candidate.ModelNew()(*given), problem.Model()(*given), strict=True):
        assert torch.equal(got, want)


def test_solution_names_its_function_and_style(tmp_path: Path) -> None:
    path = sol(tmp_path)
    spec = {"language": "python", "target_hardware": ["H100"], "entry_point": "main.py::go"}
    solution = {"name": "s", "definition": "scaled", "author": "a", "spec": spec}
    solution["sources"] = [{"path": "main.py", "content": DPS.replace("def run", "def go")}]
    candidate = load(flashinfer.candidate_source(json.dumps(solution), path.read_text(), path, tmp_path))
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


def test_definitions_without_workloads_are_left_out(tmp_path: Path) -> None:
    paths = [tmp_path / "definitions" / "test" / f"{name}.json" for name in ("bare", "scaled")]
    paths[0].parent.mkdir(parents=True)
    for path in paths:
        path.write_text(json.dumps(DEFINITION))
    assert list(flashinfer.definitions(tmp_path)) == ["bare", "scaled"]  # loading them says what is missing
    file = tmp_path / "workloads" / "test" / "scaled.jsonl"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps({"workload": WORKLOAD}))
    assert list(flashinfer.definitions(tmp_path)) == ["scaled"]


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
    save_file({"kept": torch.tensor(values)}, folder / f"{count}.safetensors")
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


def test_large_inputs_in_float8_are_drawn_in_parts(tmp_path: Path) -> None:
    x = {"shape": ["N", "K"], "dtype": "float8_e4m3fn"}
    path = sol(tmp_path, WORKLOAD | {"axes": {"N": 200}}, inputs=DEFINITION["inputs"] | {"x": x})
    problem = load(source(path, tmp_path))
    torch.manual_seed(0)
    drawn = torch.randn(200, 3).clamp(-2, 2).to(torch.float8_e4m3fn)
    torch.manual_seed(0)
    assert torch.equal(problem.get_inputs()[0].float(), drawn.float())
    problem._FI_PART = 64
    parts = problem.get_inputs()[0].float()
    assert parts.shape == (200, 3)
    assert parts.abs().max() == 2
    assert len(parts.unique()) > 50
    assert parts.mean().abs() < 0.2


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
        (axes(K2={"type": "expr", "expression": "2 * Q"}), "the axis 'K2' uses 'Q', which is not an axis"),
        (axes(K2={"type": "expr", "expression": "K2 + 1"}), "the axis 'K2' depends on itself"),
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
        ({"inputs": {k: v for k, v in INPUTS.items() if k != "eps"}}, "lacks the inputs eps"),
        ({"inputs": INPUTS | {"epsilon": INPUTS["eps"]}}, "has no inputs epsilon"),
        ({"inputs": INPUTS | {"x": INPUTS["eps"]}}, "the input x has a shape"),
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
        flashinfer.candidate_source(code, path.read_text(), path, tmp_path)


def small(folder: Path, inputs: dict[str, Any], reference: str, *workloads: Any, **changes: Any) -> Path:
    """Write a definition with the axes N and K, and the output y of N numbers."""
    found = {"axes": {"N": {"type": "var"}, "K": {"type": "var"}}, "custom_inputs_entrypoint": None}
    found |= {"inputs": inputs, "outputs": {"y": VECTOR}, "reference": f"import torch\n{reference}"}
    given = [{"uuid": "a", "axes": {"N": 4, "K": 2}, "inputs": dict.fromkeys(inputs, RANDOM)}]
    return sol(folder, *workloads or given, **(found | changes))


VECTOR = {"shape": ["N"], "dtype": "float32"}
TWO = {"a": VECTOR, "b": VECTOR}
NUMBER = {"shape": None, "dtype": "int32"}
RANDOM = {"type": "random"}
MINUS = "def run(a, b):\n    return a - b\n"


def agrees(path: Path, root: Path, code: str) -> bool:
    """Return whether a candidate gives the outputs of the reference in all workloads."""
    problem = load(source(path, root))
    candidate = load(flashinfer.candidate_source(code, path.read_text(), path, root))
    model, reference = candidate.ModelNew(), problem.Model()
    for workload in problem.get_workloads():
        given = workload["get_inputs"]()
        pairs = zip(model(*given), reference(*given), strict=True)
        if not all(torch.equal(got, want) for got, want in pairs):
            return False
    return True


def test_workload_without_tolerance_has_the_default(tmp_path: Path) -> None:
    loose = {"max_atol": 0.5, "max_rtol": 0.5, "required_matched_ratio": 0.5}
    path = sol(tmp_path, WORKLOAD | {"tolerance": loose}, WORKLOAD)
    found = load(source(path, tmp_path)).TOLERANCE
    assert (found["max_atol"], found["max_rtol"], found["required_matched_ratio"]) == (0.01, 0.01, 0.99)
    assert found["added"] is True


def test_default_of_a_trace_set_is_not_added(tmp_path: Path) -> None:
    (tmp_path / "definitions").mkdir()
    (tmp_path / "workloads").mkdir()
    path = tmp_path / "definitions" / "scaled.json"
    path.write_text(json.dumps(DEFINITION))
    lines = [json.dumps(WORKLOAD | {"tolerance": {"max_atol": 0.5}}), json.dumps(WORKLOAD)]
    (tmp_path / "workloads" / "scaled.jsonl").write_text("\n".join(lines))
    found = load(source(path, tmp_path)).TOLERANCE
    assert (found["max_atol"], found["required_matched_ratio"], found["added"]) == (0.01, 1.0, False)


def first(count: int, size: int) -> dict[str, Any]:
    inputs = {"x": RANDOM, "k": {"type": "scalar", "value": count}}
    return {"uuid": "a", "axes": {"N": size, "K": count}, "inputs": inputs}


TOP = "def run(x, k):\n    return x[:k].clone()\n"
FILL_FIRST = "def run(x, k, y):\n    y.copy_(x[:k])\n"


def top(folder: Path, *workloads: Any) -> Path:
    """Write a definition whose output has an axis that is in no input's shape."""
    outputs = {"y": {"shape": ["K"], "dtype": "float32"}}
    return small(folder, {"x": VECTOR, "k": NUMBER}, TOP, *workloads, outputs=outputs)


def test_outputs_have_the_axes_of_their_workload(tmp_path: Path) -> None:
    path = top(tmp_path, first(2, 8), first(3, 8), first(3, 6))
    assert agrees(path, tmp_path, FILL_FIRST)


def test_axes_of_a_trace_set_are_found(tmp_path: Path) -> None:
    (tmp_path / "definitions" / "top").mkdir(parents=True)
    (tmp_path / "workloads" / "top").mkdir(parents=True)
    path = tmp_path / "definitions" / "top" / "scaled.json"
    path.write_text(top(tmp_path).read_text())
    (tmp_path / "workloads" / "top" / "scaled.jsonl").write_text(json.dumps(first(2, 8)))
    assert agrees(path, tmp_path, FILL_FIRST)


def test_ambiguous_output_axis_is_named(tmp_path: Path) -> None:
    lines = [
        first(count, 8) | {"inputs": {"x": RANDOM, "k": {"type": "scalar", "value": 9}}} for count in (2, 3)
    ]
    path = top(tmp_path, *lines)
    with pytest.raises(TaskError, match="axis 'K' does not follow from the inputs; return the outputs"):
        flashinfer.candidate_source(FILL_FIRST, path.read_text(), path, tmp_path)
    returning = "def run(x, k):\n    return x[:k]\n"
    assert "_fi_table" not in flashinfer.candidate_source(returning, path.read_text(), path, tmp_path)


EXPRESSIONS = {
    "axes": {
        "N": {"type": "expr", "expression": "M // 4"},
        "M": {"type": "expr", "expression": "2 * L"},
        "L": {"type": "var"},
    }
}


@pytest.mark.parametrize("axis", ["M", "L"])
def test_expressions_may_use_later_axes(tmp_path: Path, axis: str) -> None:
    inputs = {"x": {"shape": [axis], "dtype": "float32"}}
    workload = {"uuid": "a", "axes": {"L": 8}, "inputs": {"x": RANDOM}}
    reference = "def run(x):\n    return x[:4] * 2\n"
    path = small(tmp_path, inputs, reference, workload, **EXPRESSIONS)
    assert agrees(path, tmp_path, "def run(x, y):\n    y.copy_(x[:4] * 2)\n")


FILLING = {
    "if": "if True:\n    def run(a, b, y):\n        y.copy_(a - b)\n",
    "try": "try:\n    def run(a, b, y):\n        y.copy_(a - b)\nexcept ImportError:\n    raise\n",
    "alias": "def go(a, b, y):\n    y.copy_(a - b)\nrun = go\n",
    "wrapped": "import torch\ndef go(a, b, y):\n    y.copy_(a - b)\nrun = torch.no_grad()(go)\n",
    "keyword": "def run(a, b, *, y):\n    y.copy_(a - b)\n",
    "optional": "def run(a, b, y, scale=1):\n    y.copy_(a - b)\n",
}
RETURNING = {
    "default": "def run(a, b, eps=0.0):\n    return a - b + eps\n",
    "any": "def run(*args):\n    return args[0] - args[1]\n",
    "lambda": "run = lambda a, b: a - b\n",
    "inputs by keyword": "def run(*, a, b):\n    return a - b\n",
}


@pytest.mark.parametrize("code", [*FILLING.values(), *RETURNING.values()], ids=[*FILLING, *RETURNING])
def test_required_arguments_decide_the_style(tmp_path: Path, code: str) -> None:
    assert agrees(small(tmp_path, TWO, MINUS), tmp_path, code)


@pytest.mark.parametrize("name", ["run", "torch", "self", "int", "globals"])
def test_inputs_may_have_any_name(tmp_path: Path, name: str) -> None:
    inputs = {name: {"shape": ["K"], "dtype": "float32"}}
    axes = {"K": {"type": "var"}, "N": {"type": "expr", "expression": "K * 2"}}
    path = small(tmp_path, inputs, "def run(x):\n    return torch.cat([x, x])\n", axes=axes)
    assert agrees(path, tmp_path, "def run(x, y):\n    y.view(2, -1).copy_(x)\n")


def test_reference_keeps_its_own_names(tmp_path: Path) -> None:
    reference = (
        "class Model(torch.nn.Module):\n    def forward(self, x):\n        return x * 2\n"
        "TOLERANCE = 3\ndef get_inputs(x):\n    return x * TOLERANCE\n"
        "def make(axes, device):\n    return {'x': get_inputs(torch.ones(axes['N']))}\n"
        "def run(x):\n    return Model()(get_inputs(x))\n"
    )
    workload = {"uuid": "a", "axes": {"N": 4, "K": 2}, "inputs": {"x": {"type": "custom"}}}
    path = small(tmp_path, {"x": VECTOR}, reference, workload, custom_inputs_entrypoint="make")
    problem = load(source(path, tmp_path))
    for _ in range(2):
        assert problem.Model()(*problem.get_inputs())[0].tolist() == [18.0] * 4
    assert problem.TOLERANCE["max_atol"] == 0.01


def test_candidate_keeps_its_own_names(tmp_path: Path) -> None:
    path = small(tmp_path, {"x": VECTOR}, "def run(x):\n    return x * 2\n")
    assert agrees(path, tmp_path, "base64 = zlib = torch = 2\ndef run(x):\n    return x * base64\n")


MODULE = (
    "import torch\nclass ModelNew(torch.nn.Module):\n    def forward(self, a, b):\n        return a - b\n"
)


@pytest.mark.parametrize("added", ["", "def run(a, b):\n    return ModelNew()(a, b)\n"])
def test_module_may_return_a_single_tensor(tmp_path: Path, added: str) -> None:
    assert agrees(small(tmp_path, TWO, MINUS), tmp_path, MODULE + added)


def test_run_is_preferred_to_a_module(tmp_path: Path) -> None:
    wrong = MODULE.replace("a - b", "a + b")
    assert agrees(small(tmp_path, TWO, MINUS), tmp_path, wrong + MINUS)


def test_scalar_of_shape_nothing_is_a_tensor(tmp_path: Path) -> None:
    inputs = {"s": {"shape": [], "dtype": "float16"}, "x": VECTOR}
    given = {"s": {"type": "scalar", "value": 2.5}, "x": RANDOM}
    workload = {"uuid": "a", "axes": {"N": 4, "K": 1}, "inputs": given}
    path = small(tmp_path, inputs, "def run(s, x):\n    return x * s\n", workload)
    scalar = load(source(path, tmp_path)).get_inputs()[0]
    assert (scalar.shape, scalar.dtype, scalar.item()) == ((), torch.float16, 2.5)
    assert agrees(path, tmp_path, "def run(s, x, y):\n    y.copy_(x * s)\n")


@pytest.mark.parametrize("value", [float("-inf"), float("inf"), float("nan")])
def test_scalar_may_be_infinite_or_nan(tmp_path: Path, value: float) -> None:
    given = {"c": {"type": "scalar", "value": value}, "x": RANDOM}
    workload = {"uuid": "a", "axes": {"N": 4, "K": 1}, "inputs": given}
    inputs = {"x": VECTOR, "c": {"shape": None, "dtype": "float32"}}
    path = small(tmp_path, inputs, "def run(x, c):\n    return x.clamp(min=c)\n", workload)
    assert str(load(source(path, tmp_path)).get_inputs()[1]) == str(value)


def solved(**changes: Any) -> str:
    """Return a solution of the definition ``scaled`` in JSON."""
    spec = {"language": "python", "target_hardware": ["H100"], "entry_point": "main.py::run"}
    found = {"name": "s", "definition": "scaled", "author": "a", "spec": spec}
    return json.dumps(found | {"sources": [{"path": "main.py", "content": DPS}]} | changes)


def test_solution_may_start_with_a_byte_order_mark(tmp_path: Path) -> None:
    path = sol(tmp_path)
    given = load(source(path, tmp_path)).get_inputs()
    candidate = load(flashinfer.candidate_source("\ufeff" + solved(), path.read_text(), path, tmp_path))
    assert candidate.ModelNew()(*given)[0].shape == (4, 6)


def test_solution_for_another_definition_is_refused(tmp_path: Path) -> None:
    path = sol(tmp_path)
    with pytest.raises(TaskError, match="for the definition 'other', not for 'scaled'"):
        flashinfer.candidate_source(solved(definition="other"), path.read_text(), path, tmp_path)


def test_source_without_function_says_what_to_define(tmp_path: Path) -> None:
    path = small(tmp_path, TWO, MINUS)
    with pytest.raises(AttributeError, match=r"no function run\(a, b\) and no class ModelNew; define one"):
        load(flashinfer.candidate_source("def go(a, b): ...", path.read_text(), path, tmp_path))
