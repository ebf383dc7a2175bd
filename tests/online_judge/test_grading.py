"""Tiers of chained products, whose limits come from the emulated reference."""

from collections.abc import Callable
from typing import Any

import pytest

from online_judge.checks.facts.precision import Error, Graded
from online_judge.cpu import simulated_cuda
from online_judge.evaluator.correctness import oracles, tiers
from online_judge.evaluator.correctness.grading import Grading
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, Seeds

from .test_tiers import rounded

CHAIN = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(128, 128, bias=False) for _ in range(8))

    def forward(self, x):
        for layer in self.layers:
            x = layer(x)
        return x

def get_inputs():
    return [torch.rand(64, 128) + 0.5]

def get_init_inputs():
    return []
"""
PLAIN = CHAIN.replace("x = layer(x)", "x = x * layer.weight.mean(0)")
Rounding = Callable[[Any], Any]


def grades(rounding: Rounding, source: str = CHAIN, dtype: Any = "fp32") -> tuple[Graded, ...]:
    """Grade a candidate that rounds the operands of each product of the chain."""
    problem = Problem(Reference(source, Seeds(b"chain"), dtype, cuda=False))
    reference = problem.reference
    inputs = reference.inputs("trial")
    expected = reference.outputs([inputs[0].clone()], "trial")
    got = inputs[0]
    for name in sorted(reference.weights):
        weight = reference.weights[name].to(got.dtype)
        got = rounding(got) * weight.mean(0) if source is PLAIN else rounding(got) @ rounding(weight).T
    return Grading(problem, inputs, "trial", expected).grade([got])


@pytest.mark.parametrize(
    ("rounding", "tier"),
    [
        (lambda x: x, "strict"),
        (oracles.truncated, "tf32"),
        (lambda x: rounded(x, 10), "tf32"),
        (lambda x: x.half().float(), "tf32"),
        (oracles.rounded_to_bf16, "half"),
        (lambda x: rounded(x, 4), "legacy"),
    ],
)
def test_chained_products_reach_the_tier_of_their_operands(rounding: Rounding, tier: str) -> None:
    (grade,) = grades(rounding)
    assert (grade.tier, grade.emulated) == (tier, tier != "strict")


def test_the_reference_has_an_error_of_its_own() -> None:
    (grade,) = grades(lambda x: x)
    assert 1e-9 < grade.error.rms < grade.limits["strict"].rms


@pytest.mark.parametrize(
    ("body", "size", "ulps"),
    [
        ("x.sum(1)", 400, 16),
        ("x.sum(1)", 40_000, 40),  # the longer the sum, the more rounding
        ("torch.relu(x) if x.dtype == torch.float32 else x.no_doubles()", 400, 64),  # an oracle in fp32
    ],
)
def test_strict_limit_fits_the_sums_and_the_oracle(body: str, size: int, ulps: int) -> None:
    source = PLAIN.replace("return x\n", f"return {body}\n").replace("x = x * layer.weight.mean(0)", "pass")
    source = source.replace("torch.rand(64, 128)", f"torch.rand(64, {size})")
    problem = Problem(Reference(source, Seeds(b"sum"), "fp32", cuda=False))
    inputs = problem.reference.inputs("trial")
    expected = problem.reference.outputs([inputs[0].clone()], "trial")
    (grade,) = Grading(problem, inputs, "trial", expected).grade(expected.leaves)
    assert grade.limits["strict"].rms / grade.error.size / grade.error.ulp == pytest.approx(ulps)


def test_constants_of_one_product_reject_honest_chains() -> None:
    """Why the limits are emulated."""
    (grade,) = grades(oracles.truncated)
    strict = grade.limits["strict"]
    constant = tiers.constant_limit("tf32", strict, grade.error)
    known = tiers.constant_limit("tf32", strict, Error(1e-7, 1e-6, 1e-7, 0.0))
    assert not known.allows(grade.error)
    assert grade.limits["tf32"].allows(grade.error)
    assert constant.rms >= known.rms


def test_reference_may_refuse_tf32() -> None:
    refuses = "assert not torch.backends.cuda.matmul.allow_tf32\n        return x\n"
    with simulated_cuda("sm_90"):
        problem = Problem(Reference(CHAIN.replace("return x\n", refuses), Seeds(b"c"), "fp32", cuda=True))
        inputs = problem.reference.inputs("trial")
        expected = problem.reference.outputs([inputs[0].clone()], "trial")
        got = expected.leaves[0] * (1 + 1e-3 * inputs[0])
        (grade,) = Grading(problem, inputs, "trial", expected).grade([got])
    assert grade.tier == "tf32"


def test_limits_are_at_least_strict_and_grow() -> None:
    (grade,) = grades(lambda x: rounded(x, 4))
    strict, tf32, half = (grade.limits[tier] for tier in ("strict", "tf32", "half"))
    assert strict.rms <= tf32.rms <= half.rms
    assert strict.peak <= tf32.peak <= half.peak


def test_without_products_constants_apply() -> None:
    (grade,) = grades(oracles.rounded_to_bf16, PLAIN)
    assert (grade.tier, grade.emulated) == ("half", False)
    assert grade.precision().basis == "constants"


def test_negligible_products_use_the_constants() -> None:
    """Another part of the reference may be a product only in the candidate."""
    source = CHAIN.replace(
        "for layer in self.layers:\n            x = layer(x)",
        "x = (x[:, :, None] * x[:, None]).sum(2) + 1e-5 * self.layers[0](x)",
    )
    problem = Problem(Reference(source, Seeds(b"chain"), "fp32", cuda=False))
    inputs = problem.reference.inputs("trial")
    expected = problem.reference.outputs([inputs[0].clone()], "trial")
    cut = oracles.truncated(inputs[0])
    got = (cut[:, :, None] * cut[:, None]).sum(2) + 1e-5 * inputs[0] @ problem.reference.weights[
        "layers.0.weight"
    ].T
    (grade,) = Grading(problem, inputs, "trial", expected).grade([got])
    assert (grade.tier, grade.emulated) == ("tf32", False)


@pytest.mark.parametrize(
    ("output", "loose"),
    [("x.mean() * 1e-3", True), ("x.mean() * 1e3", False), ("x", True), ("10 * (x - 1)", False)],
)
def test_looseness_is_relative_to_spread_or_size(output: str, loose: bool) -> None:
    source = CHAIN.replace("return x\n", f"return {output}\n").replace("x = layer(x)", "pass")
    assert Problem(Reference(source, Seeds(b"l"), "fp32", cuda=False)).is_loose(0.05) is loose


def test_half_precision_tasks_are_not_emulated() -> None:
    (grade,) = grades(lambda x: 1.3 * x, dtype="bf16")
    assert (grade.tier, grade.emulated) == ("legacy", False)


def test_repeat_limit_is_that_of_the_tier_reached() -> None:
    (strict,), (half,), (legacy,) = (
        grades(rounding) for rounding in (lambda x: x, oracles.rounded_to_bf16, lambda x: rounded(x, 4))
    )
    assert strict.repeat_limit == strict.limits["strict"].times(2.0)
    assert half.repeat_limit == half.limits["half"].times(2.0)
    assert legacy.repeat_limit == legacy.limits["half"].times(2.0)
