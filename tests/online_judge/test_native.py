"""``dtype_str: native``: dtypes stay as the problem makes them."""

from pathlib import Path
from typing import Any

import pytest

from online_judge.evaluator.reference import Reference, Seeds

from .live import LiveJudge
from .test_v2_jobs import judged

OWN = Path(__file__).parents[1] / "own_modules"
SELF = "\n\nModelNew = Model\n"
SCALED = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.tanh(x)


class ModelNew(Model):
    def forward(self, x):
        return super().forward(x) * 1.012


def get_inputs():
    return [torch.randn(64, 64, dtype={dtype})]


def get_init_inputs():
    return []
"""


def verdict(judge: LiveJudge, source: str, candidate: str = "", **fields: Any) -> dict[str, Any]:
    answer = judge.evaluate(candidate or source + SELF, source, tier="strict", tf32="off", **fields)
    found: dict[str, Any] = answer["metadata"]
    return found


@pytest.mark.parametrize("name", sorted(path.stem for path in OWN.glob("*.py")))
def test_own_module_passes_as_its_own_candidate(judge: LiveJudge, name: str) -> None:
    source = (OWN / f"{name}.py").read_text()
    assert verdict(judge, source, dtype_str="native")["status"] == "passed"


def test_own_dtypes_are_lost_without_native(judge: LiveJudge) -> None:
    source = (OWN / "bf16_mlp.py").read_text()
    assert verdict(judge, source, dtype_str="fp32")["status"] == "launch"
    compiled = judged(
        judge, source + SELF, kind="compile", request={"original_model_src": source, "dtype_str": "native"}
    )
    assert compiled["report"]["status"] == "passed"


@pytest.mark.parametrize(
    ("dtype", "status"), [("torch.bfloat16", "passed"), ("torch.float32", "wrong_value")]
)
def test_the_tier_follows_the_dtype_of_the_output(judge: LiveJudge, dtype: str, status: str) -> None:
    source = SCALED.replace("{dtype}", dtype)
    found = verdict(judge, source, source, dtype_str="native")
    assert (found["status"], found["tier"]) == (status, "half")


@pytest.mark.parametrize(
    ("dtype", "found"), [("torch.float32", "fp32"), ("torch.float16", "fp16"), ("torch.bfloat16", "bf16")]
)
def test_the_arithmetic_is_read_off_the_problem(dtype: str, found: str) -> None:
    reference = Reference(SCALED.replace("{dtype}", dtype), Seeds(b"key"), "native", cuda=False)
    (leaf,) = reference.outputs(reference.inputs("one"), "one").leaves
    assert (str(leaf.dtype), reference.arithmetic) == (dtype, found)
