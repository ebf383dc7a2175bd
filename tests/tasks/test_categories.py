"""The fifteen categories of KernelBench-X, read from sources."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adaexplore.core.dialects import flashinfer, tritonbench
from adaexplore.settings.paths import REPOSITORY_ROOT
from adaexplore.tasks.categories import category_of

MODEL = """
import torch
from torch import nn
import torch.nn.functional as F
class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = {layer}
    def forward(self, x, y=None):
        return {result}
def get_inputs():
    return [torch.rand(3).softmax(0)]
def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("layer", "result", "category"),
    [
        ("None", "torch.relu(x)", "Activation"),
        ("nn.LeakyReLU()", "self.layer(x)", "Activation"),
        ("nn.ConvTranspose3d(1, 2, 3)", "self.layer(x)", "Convolution"),
        ("nn.Conv2d(1, 2, 3)", "F.relu(self.layer(x))", "Fusion"),
        ("nn.LSTM(1, 2)", "self.layer(x)", "Fusion"),
        ("None", "x.index_select(0, y)", "Index"),
        ("None", "torch.linalg.qr(x @ y).R.sum()", "LinearAlgebra"),
        ("None", "F.cross_entropy(x, y)", "Loss"),
        ("None", "x * y + 1", "Math"),
        ("None", "torch.log_softmax(x, 1)", "Math"),
        ("None", "x @ y", "MatrixMultiply"),
        ("nn.Parameter(torch.randn(3))", "torch.matmul(x, self.layer)", "MatrixMultiply"),
        ("nn.BatchNorm2d(3)", "self.layer(x)", "Normalization"),
        ("nn.MaxPool1d(3)", "self.layer(x)", "Pooling"),
        ("None", "torch.clamp(x.to(torch.int8), -8, 7)", "Quantization"),
        ("None", "(x.to(torch.float8_e4m3fn) @ y)", "Quantization"),
        ("None", "torch.bernoulli(x)", "Random"),
        ("None", "torch.argmax(x, dim=max(1, 0))", "Reduce"),
        ("nn.Upsample(2)", "self.layer(x)", "SpatialOps"),
        ("None", "x", "Other"),
    ],
)
def test_operators_decide(layer: str, result: str, category: str) -> None:
    assert category_of(MODEL.format(layer=layer, result=result)) == category


def test_optimizers_are_known_by_name() -> None:
    assert category_of("def sgd_step(param, grad, lr):\n    return param - lr * grad\n") == "Optimizer"


def test_wrapper_of_tritonbench_has_no_category() -> None:
    text = "import torch\ndef go(x):\n    return torch.relu(x)\n" + "#" * 146 + "\ngo(torch.ones(2))\n"
    assert category_of(tritonbench.problem_source(text, Path("go.py"))) == "Activation"


@pytest.mark.parametrize(
    ("dtype", "category"), [("float32", "Activation"), ("float8_e4m3fn", "Quantization")]
)
def test_wrapper_of_definitions_adds_dtypes_alone(tmp_path: Path, dtype: str, category: str) -> None:
    tensor = {"shape": ["N"], "dtype": "float32"}
    definition = {
        "name": "go",
        "axes": {"N": {"type": "var"}},
        "inputs": {"x": tensor | {"dtype": dtype}},
        "outputs": {"y": tensor},
        "reference": "import torch\ndef run(x):\n    return torch.relu(x)\n",
    }
    workload = {"uuid": "a", "axes": {"N": 4}, "inputs": {"x": {"type": "random"}}}
    path = tmp_path / "definition.json"
    path.write_text(json.dumps(definition))
    path.with_name("workload.jsonl").write_text(json.dumps(workload))
    assert category_of(flashinfer.problem_source(path.read_text(), path, tmp_path)) == category


def test_source_that_does_not_parse_is_other() -> None:
    assert category_of("class Model(") == "Other"


def test_most_problems_of_kernelbench_x_have_their_category() -> None:
    folder = REPOSITORY_ROOT / "datasets/kernelbench-x/data/kernelbenchx"
    if not folder.is_dir():
        pytest.skip("needs: adaexplore datasets download kernelbench-x")
    paths = sorted(folder.glob("*/*.py"))
    right = [path for path in paths if category_of(_reference(path)) == path.parent.name]
    assert len(right) / len(paths) > 0.8


def _reference(path: Path) -> str:
    """Return the part of a file above its line of 146 ``#``, below which its tests are."""
    return path.read_text().split("#" * 146)[0]
