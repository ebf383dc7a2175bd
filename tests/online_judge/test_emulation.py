"""The reference with rounded operands, which sets the limits of the tiers tf32 and half."""

from typing import Any

import pytest
import torch
from torch import nn

from online_judge.common import trees
from online_judge.evaluator.correctness import deviation, oracles


class Function(nn.Module):
    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Any) -> Any:
        return self.function(*inputs)


def causal_attention(q: Any, k: Any, v: Any) -> Any:
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


PRODUCTS = {
    "linear": (nn.Linear(64, 32), [(8, 64)]),
    "product": (Function(torch.matmul), [(8, 64), (64, 8)]),
    "batched": (Function(torch.bmm), [(2, 8, 64), (2, 64, 8)]),
    "vector": (Function(torch.matmul), [(8, 64), (64,)]),
    "einsum": (Function(lambda a, b: torch.einsum("bij,bkj->bik", a, b)), [(2, 8, 64), (2, 8, 64)]),
    "conv": (nn.Conv2d(8, 8, 3), [(2, 8, 9, 9)]),
    "conv-transposed": (nn.ConvTranspose3d(8, 8, 3), [(2, 8, 5, 5, 5)]),
    "attention": (Function(causal_attention), [(2, 4, 16, 32)] * 3),
    "multihead": (nn.MultiheadAttention(32, 4, batch_first=True), [(2, 16, 32)] * 3),
    "encoder": (nn.TransformerEncoderLayer(32, 4, batch_first=True), [(2, 16, 32)]),
    "lstm": (nn.LSTM(32, 32, 2), [(8, 4, 32)]),
    "gru": (nn.GRU(32, 32, bidirectional=True), [(8, 4, 32)]),
    "rnn": (nn.RNN(32, 32), [(8, 4, 32)]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_operands_of_every_product_are_rounded(name: str) -> None:
    torch.manual_seed(0)
    model, shapes = PRODUCTS[name]
    model.eval()
    inputs = [torch.randn(shape) for shape in shapes]
    kept = [value.clone() for value in inputs]
    with torch.no_grad():
        plain = trees.take_apart(model(*inputs)).leaves
    tf32, half = (oracles.emulated(model, inputs, tier, 0) for tier in ("tf32", "half"))
    assert tf32 is not None
    assert half is not None
    for truncated, rounded, want in zip(tf32.leaves, half.leaves, plain, strict=True):
        small, large = deviation.error(truncated, want).rms, deviation.error(rounded, want).rms
        assert 1e-4 < small < large < 2e-2
    assert all(torch.equal(*pair) for pair in zip(inputs, kept, strict=True))
    assert torch.backends.mha.get_fastpath_enabled()
    assert torch.backends.cudnn.enabled


@pytest.mark.parametrize(
    ("product", "shapes", "rounded"),
    [
        (torch.addmm, [(8, 8), (8, 64), (64, 8)], (1, 2)),
        (torch.baddbmm, [(2, 8, 8), (2, 8, 64), (2, 64, 8)], (1, 2)),
        (torch.addmv, [(8,), (8, 64), (64,)], (1, 2)),
        (torch.mm, [(8, 64), (64, 8)], (0, 1)),
        (nn.functional.conv2d, [(2, 8, 9, 9), (8, 8, 3, 3), (8,)], (0, 1)),
    ],
)
def test_only_product_operands_are_rounded(
    product: Any, shapes: list[tuple[int, ...]], rounded: tuple[int, int]
) -> None:
    torch.manual_seed(0)
    inputs = [torch.randn(shape) for shape in shapes]
    got = oracles.emulated(Function(product), inputs, "tf32", 0)
    assert got is not None
    given = [oracles.truncated(each) if at in rounded else each for at, each in enumerate(inputs)]
    assert deviation.error(got.leaves[0], product(*given)).rms < 1e-6


def test_random_models_repeat_themselves_under_one_seed() -> None:
    model = Function(lambda x: (x @ x) * torch.rand(8, 8))
    first, again, other = (oracles.emulated(model, [torch.ones(8, 8)], "half", seed) for seed in (1, 1, 2))
    assert first is not None
    assert again is not None
    assert other is not None
    assert torch.equal(first.leaves[0], again.leaves[0])
    assert not torch.equal(first.leaves[0], other.leaves[0])


def test_emulation_leaves_the_inputs_unchanged() -> None:
    x = torch.ones(8, 8)
    assert oracles.emulated(Function(lambda x: x.mul_(2.0) @ x), [x], "tf32", 0) is not None
    assert torch.equal(x, torch.ones(8, 8))


def test_truncated_operands_keep_ten_bits() -> None:
    values = torch.tensor([1.0, 1 + 2**-10, 1 + 2**-11, -3.14159265, 1e-40, float("inf")])
    cut = oracles.truncated(values)
    assert cut[:3].tolist() == [1.0, 1 + 2**-10, 1.0]
    assert -3.14159265 < float(cut[3]) < -3.1396
    assert float(cut[5]) == float("inf")
    assert bool(torch.isnan(oracles.truncated(torch.tensor([float("nan")]))).all())
    strided = torch.randn(4, 6).T
    assert torch.equal(oracles.truncated(strided), oracles.truncated(strided.contiguous()))


@pytest.mark.parametrize("model", [nn.ReLU(), nn.Softmax(1), Function(lambda x: x.cumsum(1))])
def test_without_a_product_nothing_is_emulated(model: nn.Module) -> None:
    assert oracles.emulated(model, [torch.randn(4, 8)], "tf32", 0) is None


def test_model_failing_when_rounded_has_no_emulation() -> None:
    def refuse(x: Any) -> Any:
        raise RuntimeError("no such kernel")

    assert oracles.emulated(Function(refuse), [torch.randn(4, 8)], "half", 0) is None


def test_products_of_half_precision_stay_as_they_are() -> None:
    model = nn.Linear(8, 8).bfloat16()
    assert oracles.emulated(model, [torch.randn(2, 8).bfloat16()], "tf32", 0) is None
