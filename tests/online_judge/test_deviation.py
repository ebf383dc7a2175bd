"""Errors against an oracle: finite outputs are measured in a shorter way than others."""

import math

import pytest
import torch

from online_judge.evaluator.correctness import deviation
from online_judge.evaluator.correctness.deviation import error

SHAPES = [(5,), (3, 1000)]


def oracle(kind: str, shape: tuple[int, ...]) -> torch.Tensor:
    drawn = torch.randn(shape, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    return {"usual": drawn, "far from zero": drawn + 1e5, "large": drawn * 1e30, "zeros": drawn * 0}[kind]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("kind", ["usual", "far from zero", "large", "zeros"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_fast_and_slow_sums_agree(
    kind: str, shape: tuple[int, ...], dtype: torch.dtype, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deviation, "_FINITE_CHUNK", 700)
    monkeypatch.setattr(deviation, "_CHUNK", 512)
    true = oracle(kind, shape)
    got = (true * 1.1 + 0.01).to(dtype)
    before = true.clone()
    short = error(got, true)
    assert torch.equal(true, before)
    monkeypatch.setattr(deviation, "_sums_of_finite", lambda left, right: [math.nan])
    long = vars(error(got, true))
    # the noise is a difference of two sums of squares
    expected = {name: pytest.approx(value, rel=1e-9, abs=1e-7 * short.rms) for name, value in long.items()}
    assert vars(short) == expected


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
@pytest.mark.parametrize("place", [0, 2500])
def test_nonfinite_mismatch_counts_as_odd(value: float, place: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deviation, "_FINITE_CHUNK", 700)
    true = oracle("usual", (3, 1000))
    got = true.float()
    got.view(-1)[place] = value
    assert error(got, true).odd == 1
    true.view(-1)[place] = value
    found = error(got, true)
    assert found.odd == 0
    assert math.isfinite(found.rms)


@pytest.mark.parametrize("exponent", [900, 1021])
def test_elements_whose_squares_overflow_have_the_same_error(exponent: int) -> None:
    true = oracle("usual", (5,)).clamp(-3, 3)
    small, large = error(true * 1.1, true), error(true * 1.1 * 2.0**exponent, true * 2.0**exponent)
    assert vars(large) == vars(small) | {"spread": pytest.approx(math.ldexp(small.spread, exponent))}
