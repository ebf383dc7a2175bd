"""Modules that the writer has never seen, translated and run beside their references."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from adaexplore.offline_writer.choices import FUSION, GEMM, ROWS, Choices, read_choices
from adaexplore.offline_writer.module import translate
from adaexplore.offline_writer.writer import possible_designs
from tests.offline_writer.generated import random_module
from tests.offline_writer.modules import MODULES

QUICKSTART = Path(__file__).parents[2] / "datasets" / "quickstart"
QUICKSTART_MODULES = {str(p.relative_to(QUICKSTART)): p.read_text() for p in QUICKSTART.rglob("*.py")}
REFERENCES = MODULES | QUICKSTART_MODULES | {f"generated_{n}": random_module(n) for n in range(40)}
USUAL = Choices()
OTHER = USUAL.with_structure(GEMM, "triton").with_structure(ROWS, "loop").with_number("LOOP_BLOCK", 16)
SPLIT = USUAL.with_structure(FUSION, "split").with_structure(ROWS, "online").with_number("LOOP_BLOCK", 16)
VARIANTS = {"usual": USUAL, "other": OTHER, "split": SPLIT}


def _cases() -> list[dict]:
    cases = []
    for name, reference in REFERENCES.items():
        for variant, choices in VARIANTS.items():
            if name == "long_rows" and choices is not USUAL:
                choices = choices.with_number("LOOP_BLOCK", 1024)  # 2500 turns are slow in the interpreter
            candidate = translate(reference, choices)
            dtypes = ["float32"]
            if variant == "usual":
                dtypes += ["bfloat16"] if name in MODULES else []
            elif variant == "other":
                dtypes += ["float16"] if name in MODULES else []
            cases += [
                {
                    "name": f"{name}/{variant}/{dtype}",
                    "reference": reference,
                    "candidate": candidate,
                    "dtype": dtype,
                    "transposed": dtype == "float16",
                }
                for dtype in dtypes
            ]
    return cases


@pytest.fixture(scope="module")
def problems() -> dict[str, str | None]:
    pytest.importorskip("torch")
    pytest.importorskip("triton")
    done = subprocess.run(
        [sys.executable, str(Path(__file__).with_name("interpreted.py"))],
        input=json.dumps(_cases()),
        env={**os.environ, "TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        timeout=280,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout)


@pytest.mark.parametrize("name", REFERENCES)
def test_translated_module_computes_what_the_reference_computes(name: str, problems: dict) -> None:
    mine = {case: problem for case, problem in problems.items() if case.rsplit("/", 2)[0] == name}
    assert len(mine) >= 3
    assert {case: problem for case, problem in mine.items() if problem} == {}


@pytest.mark.parametrize("name", sorted({*MODULES, *QUICKSTART_MODULES} - {"in_place"}))
def test_every_design_is_python_with_a_triton_kernel(name: str) -> None:
    for choices in possible_designs(REFERENCES[name]):
        source = translate(REFERENCES[name], choices)
        ast.parse(source)
        assert "@triton.jit" in source
        assert "class ModelNew" in source
        assert "'cuda'" not in source


def test_quickstart_has_its_twelve_problems() -> None:
    assert [len(list((QUICKSTART / f"level{level}").glob("*.py"))) for level in (1, 2, 3)] == [6, 4, 2]


def test_one_element_wise_chain_becomes_one_kernel() -> None:
    source = translate(MODULES["gelu_spelled_out"], USUAL)
    forward = source[source.index("def forward") :]
    assert source.count("@triton.jit") == 1
    assert "torch." not in forward


def test_normalisation_with_what_surrounds_it_becomes_one_kernel() -> None:
    source = translate(MODULES["layer_norm_spelled_out"], USUAL)
    assert source.count("def rows_") == 3  # in registers, in a loop, and the launcher of both


def test_linear_and_its_epilogue_become_one_tiled_kernel() -> None:
    source = translate(MODULES["linear_epilogue"], OTHER)
    assert source.count("tl.dot(") == 1
    assert source.count("_kernel[") == 1
    assert "self.fc(" not in source


def test_online_rows_take_one_pass_less() -> None:
    counts = [
        translate(MODULES["softmax_dim1"], USUAL.with_structure(ROWS, rows)).count("in range(0, N, BLOCK)")
        for rows in ("online", "loop")
    ]
    assert counts == [2, 3]


def test_choices_are_read_back_from_a_kernel() -> None:
    choices = OTHER.with_number("TILE_K", 64).with_number("STAGES", 4)
    found = read_choices(translate(MODULES["linear_epilogue"], choices))
    assert found is not None
    assert found.structure == choices.structure
    assert (found.numbers["TILE_K"], found.numbers["STAGES"]) == (64, 4)
    assert read_choices("import torch\n") is None


def test_translation_is_deterministic() -> None:
    for reference in MODULES.values():
        assert translate(reference, OTHER) == translate(reference, OTHER)


def test_unrecognised_parts_stay_with_torch() -> None:
    source = translate(MODULES["convolution_then_chain"], USUAL)
    assert "self.conv(x)" in source
    assert "@triton.jit" in source


@pytest.mark.parametrize("name", ["in_place", "full_reductions"])
def test_rare_parts_stay_with_torch(name: str) -> None:
    forward = translate(MODULES[name], USUAL).partition("def forward")[2]
    for part in {"in_place": ("z.add_(1.0)", "y += 1"), "full_reductions": ("torch.mean(", ".sum()")}[name]:
        assert part in forward


KEYWORD_FORM = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self, width, slope=0.1):
        super().__init__()
        self.slope = slope
    def forward(self, x, *, bias):
        return torch.relu(x) * self.slope + bias

def get_inputs():
    return [[torch.rand(8, 16)], {"bias": torch.rand(16)}]

def get_init_inputs():
    return [[], {"width": 16, "slope": 0.2}]
"""
FUNCTION = """
import torch

def scaled(x, bias):
    return torch.relu(x) * 0.5 + bias

Model = scaled

def get_inputs():
    return {"x": torch.rand(8, 16), "bias": torch.rand(16)}
"""


@pytest.mark.parametrize(
    "source", [KEYWORD_FORM, FUNCTION, FUNCTION.replace("scaled", "Model").replace("Model = Model\n", "")]
)
def test_keyword_inputs_and_functions_become_kernels(source: str) -> None:
    written = translate(source, USUAL)
    assert "def fused_relu_mul_add(" in written
    assert "class ModelNew(" in written
