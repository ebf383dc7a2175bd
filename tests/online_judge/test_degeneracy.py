import pytest

from adaexplore.core.dialects.schema import Tolerance
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, Seeds

TEMPLATE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        return {result}

def get_inputs():
    return [{inputs}]

def get_init_inputs():
    return []
"""


def problem(result: str, inputs: str = "torch.randn(8, 64)") -> Problem:
    source = TEMPLATE.format(result=result, inputs=inputs)
    return Problem(Reference(source, Seeds(b"key"), "fp32", cuda=False))


@pytest.mark.parametrize(
    "result",
    ["torch.relu(x)", "x * 3", "x.sum(1)", "(x, x @ torch.zeros(64, 2))", "x.argmax(1)", "x.mean(1) * 8"],
)
def test_sound_problems_have_no_trivial_answer(result: str) -> None:
    assert problem(result).trivial_answers(0.05) == ()


@pytest.mark.parametrize(
    ("result", "inputs", "reasons"),
    [
        ("torch.softmax(x, 1)", "torch.rand(8, 4096)", ["constant", "zeros", "mean", "first-row"]),
        ("x - x", "torch.randn(8, 64)", ["constant", "zeros", "mean", "first-row"]),
        ("torch.relu(x)", "torch.rand(8, 64)", ["input"]),
        ("(x.T, x)", "torch.randn(8, 8)", []),
        ("x.mean() * 8", "torch.rand(8, 100000)", ["constant", "mean"]),
        ("x.mean(1) + 3", "torch.rand(8, 100000)", ["constant", "mean"]),
        ("x.sum(0).expand(8, 64) * 1", "torch.randn(8, 64)", ["first-row"]),
        ("x.argmax(1)", "torch.arange(64.).expand(8, 64)", ["constant", "mean"]),
        ("(x > 2).long()", "torch.rand(8, 8)", ["constant", "zeros", "mean", "first-row"]),
    ],
)
def test_trivial_answers_are_found(result: str, inputs: str, reasons: list[str]) -> None:
    assert list(problem(result, inputs).trivial_answers(0.05)) == reasons


def test_a_tighter_tolerance_finds_fewer() -> None:
    assert problem("torch.softmax(x, 1)", "torch.rand(8, 4096)").trivial_answers(1e-6) == ()


def test_tolerance_of_the_problem_decides() -> None:
    few_ones = problem("(x > 2).float()", "torch.randn(64, 64)")
    assert few_ones.trivial_answers(0.05) == ()
    assert "zeros" in few_ones.trivial_answers(Tolerance(required_matched_ratio=0.95))
    softmax = problem("torch.softmax(x, 1)", "torch.rand(8, 4096)")
    assert softmax.is_loose(0.05)
    assert not softmax.is_loose(Tolerance(max_atol=1e-6, max_rtol=1e-3))
    facts = softmax.facts(Tolerance(max_atol=1.0))
    assert facts.trivial_answers
    assert facts.tolerance is None
    assert facts.looseness is not None


def test_the_answer_to_random_weights_is_no_constant() -> None:
    assert problem("nn.functional.dropout(x)").trivial_answers(0.05) == ()


@pytest.mark.parametrize(
    ("inputs", "constant"),
    [
        ("torch.randn(4)", False),
        ("torch.ones(4)", True),
        ("torch.full((2,), float('nan'))", True),
        ("torch.randint(0, 9, (99,))", False),
        ("(torch.ones(4), {'a': torch.rand(3)})", False),
    ],
)
def test_constant_inputs_are_found(inputs: str, constant: bool) -> None:
    assert problem("x", inputs).constant_inputs is constant
