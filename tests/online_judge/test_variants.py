from contextlib import nullcontext
from typing import Any

import pytest
import torch

from online_judge.evaluator.correctness import variants
from online_judge.evaluator.correctness.variants import VARIANTS, Variant
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import NotEnoughMemory, Reference, ReferenceFailed, Seeds

KINDS = ("enlarged", "diminished", "shifted", "tied")
BY_NAME: dict[str, Variant] = dict(zip(KINDS, VARIANTS, strict=True))


def applied(name: str, value: Any, seed: int = 0) -> Any:
    return BY_NAME[name].apply([value], torch.Generator().manual_seed(seed))[0]


def test_inputs_are_scaled_up_and_down() -> None:
    assert [variant.name for variant in VARIANTS] == ["scaled", "scaled", "shifted", "tied"]
    x = torch.randn(50, 3)
    for kind, factor in (("enlarged", 10.0), ("diminished", 0.1)):
        for seed in range(9):
            torch.testing.assert_close(applied(kind, x, seed), factor * x)


def test_complex_inputs_vary_as_well() -> None:
    x = torch.randn(50, dtype=torch.complex64)
    torch.testing.assert_close(applied("enlarged", x), 10 * x)
    assert float((applied("shifted", x) - x).abs().min()) > 0.5


def test_shifted_variant_moves_mean_one_standard_deviation() -> None:
    x = 5 * torch.randn(2000) + 1
    for seed in range(10):
        moved = applied("shifted", x, seed) - x
        assert float(moved.std()) < 1e-5
        assert 0.7 * float(x.std()) < abs(float(moved.mean())) < 1.3 * float(x.std())


def test_tied_has_many_zeros_and_few_values() -> None:
    x = torch.randn(2000)
    tied = applied("tied", x)
    assert float((tied == 0).float().mean()) > 0.1
    assert len(tied.unique()) < 30
    assert float((tied - x).abs().max()) <= 0.4 * float(x.std())


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("seed", range(4))
def test_domains_are_kept(name: str, seed: int) -> None:
    torch.manual_seed(seed)
    share = applied(name, torch.rand(500), seed)
    assert 0 <= float(share.min()) <= float(share.max()) <= 1
    assert float(applied(name, 3 * torch.rand(500), seed).min()) >= 0
    assert float(applied(name, torch.rand(500) + 0.5, seed).min()) > 0


@pytest.mark.parametrize("name", BY_NAME)
def test_labels_masks_and_whole_numbers_stay(name: str) -> None:
    for value in (
        torch.arange(10),
        torch.arange(10) > 3,
        torch.randint(0, 2, (50,)).float() * 2 - 1,
        torch.zeros(4),
        torch.zeros(0),
    ):
        made = applied(name, value)
        assert torch.equal(made, value)
        assert made.dtype == value.dtype
        assert value.numel() == 0 or made.data_ptr() != value.data_ptr()
    assert BY_NAME[name].apply([3.14, "same", None], torch.Generator()) == [3.14, "same", None]


@pytest.mark.parametrize("name", BY_NAME)
def test_structure_of_a_matrix_is_kept(name: str) -> None:
    x = torch.randn(40, 40)
    triangle = applied(name, x.tril())
    assert torch.equal(triangle, triangle.tril())
    symmetric = applied(name, x + x.T)
    assert torch.equal(symmetric, symmetric.T)


@pytest.mark.parametrize("name", BY_NAME)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64])
def test_dtypes_trees_and_infinities_are_kept(name: str, dtype: torch.dtype) -> None:
    x = torch.randn(100, dtype=dtype)
    x[3] = float("-inf")
    before = x.clone()
    first, rest = BY_NAME[name].apply([x, {"a": (x, [2])}], torch.Generator().manual_seed(1))
    assert torch.equal(x, before)
    assert first.dtype == dtype
    assert not torch.equal(first, x)
    assert torch.equal(first, rest["a"][0])
    assert torch.isneginf(first).nonzero().tolist() == [[3]]


def test_a_large_leaf_is_looked_at_in_part(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(variants, "_SAMPLE", 64)
    x = torch.rand(10_000)
    x[77] = -0.5  # every 157th is looked at, and the ends
    assert float(applied("shifted", x).mean() - x.mean()) > 0.15


def test_infinite_or_saturated_outputs_are_not_usable() -> None:
    original = torch.sigmoid(torch.randn(100))
    assert variants.usable([original * 0.5], [original])
    assert not variants.usable([torch.full((100,), float("inf"))], [original])
    assert not variants.usable([torch.ones(100)], [original])
    infinite = torch.cat([original, torch.tensor([float("inf")])])
    assert variants.usable([infinite], [infinite])
    constant = torch.zeros(10)
    assert variants.usable([constant], [constant])
    assert variants.usable(
        [torch.tensor(3.0), torch.tensor([1, 1])], [torch.tensor(2.0), torch.tensor([1, 2])]
    )


def test_units_grow_with_the_outputs_and_never_shrink() -> None:
    x = torch.randn(100)
    larger, smaller, whole = variants.units([10 * x, 0.1 * x, x.long()], [x, x, x.long()])
    assert larger == pytest.approx(10.0)
    assert (smaller, whole) == (1.0, 1.0)


STEEP = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return {result}

def get_inputs():
    return [torch.randn(8, 64)]

def get_init_inputs():
    return []
"""


@pytest.mark.parametrize(
    ("result", "steady"),
    [
        ("x * 2", True),
        ("torch.softmax(x, 1)", True),
        ("torch.exp(40 * x.clamp(max=2.0))", False),
        ("torch.sin(1e4 * x)", False),
        ("(x > 0).long()", True),
        ("x * 2 if (x.view(torch.int32) & 0x1FFF).any() else x.refused()", False),
    ],
)
def test_steep_references_say_nothing_about_a_wrong_output(result: str, steady: bool) -> None:
    problem = Problem(Reference(STEEP.format(result=result), Seeds(b"key"), "fp32", cuda=False))
    inputs = problem.reference.inputs("0")
    before = inputs[0].clone()
    outputs = problem.reference.outputs(inputs, "0")
    assert problem.is_steady(inputs, "0", outputs, 0.02) is steady
    assert torch.equal(inputs[0], before)


def test_lack_of_memory_is_no_refusal() -> None:
    full = "(_ for _ in ()).throw(torch.OutOfMemoryError('CUDA out of memory'))"
    for result in ("x.refused()", full):
        problem = Problem(Reference(STEEP.format(result=result), Seeds(b"key"), "fp32", cuda=False))
        inputs = problem.reference.inputs("0")
        with pytest.raises(NotEnoughMemory) if result == full else nullcontext():
            assert problem.outputs_if_finite(inputs, "0") is None


def test_lost_context_is_no_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    def synchronize() -> None:
        raise RuntimeError("CUDA error: device-side assert triggered")

    problem = Problem(Reference(STEEP.format(result="x.refused()"), Seeds(b"key"), "fp32", cuda=False))
    inputs = problem.reference.inputs("0")
    problem.reference.cuda = True
    monkeypatch.setattr(torch.cuda, "synchronize", synchronize)
    with pytest.raises(ReferenceFailed, match="device-side assert"):
        problem.outputs_if_finite(inputs, "0")
