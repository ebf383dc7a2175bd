import math
from collections.abc import Callable
from dataclasses import astuple, replace
from typing import Any

import pytest
import torch

from online_judge.checks.facts import precision
from online_judge.checks.facts.precision import Error, Limit
from online_judge.evaluator.correctness import deviation, tiers


def rounded(x: Any, bits: int) -> Any:
    """Nearest number with ``bits`` of mantissa."""
    shift = 23 - bits
    whole = x.view(torch.int32)
    whole = whole + ((1 << (shift - 1)) - 1) + ((whole >> shift) & 1)
    return ((whole >> shift) << shift).view(torch.float32)


def cut(x: Any, bits: int) -> Any:
    """Return the number without its last bits, as hardware does it that ignores them."""
    return ((x.view(torch.int32) >> (23 - bits)) << (23 - bits)).view(torch.float32)


def in_steps(a: Any, b: Any, step: int, dtype: Any = torch.float32) -> Any:
    """Return a product whose sums are added up ``step`` terms at a time, in ``dtype``."""
    total = torch.zeros(a.shape[0], b.shape[1], dtype=dtype)
    for k in range(0, a.shape[1], step):
        total = total + (a[:, k : k + step] @ b[k : k + step]).to(dtype)
    return total.float()


def summed(x: Any, step: int) -> Any:
    """Row sums, ``step`` terms at a time."""
    total = torch.zeros(x.shape[0])
    for k in range(0, x.shape[1], step):
        total = total + x[:, k : k + step].sum(1)
    return total


def reached(candidate: Error, eager: Error, lossy: Error | None = None, *, depth: float = 1.0) -> str:
    """Return the tier by the constants that apply where the reference cannot be emulated."""
    strict = tiers.strict_limit(eager, depth=depth)
    limits: dict[Any, Any] = {"strict": strict}
    for tier in ("tf32", "half"):
        limits[tier] = tiers.constant_limit(tier, strict, eager, lossy)
    return tiers.reached(candidate, eager, limits)


OPERANDS: dict[str, tuple[Callable[[Any], Any], str]] = {
    "tf32": (lambda x: rounded(x, 10), "tf32"),
    "tf32-cut": (lambda x: cut(x, 10), "tf32"),
    "fp16": (lambda x: x.half().float(), "tf32"),  # the same mantissa: cannot be told from TF32
    "bf16": (lambda x: x.bfloat16().float(), "half"),
    "bf16-cut": (lambda x: cut(x, 7), "half"),
}


def operands(kind: str, depth: int) -> tuple[Any, Any]:
    torch.manual_seed(depth)
    left = torch.randn(64, depth) if kind == "normal" else torch.rand(64, depth)
    right = torch.rand(depth, 64) if kind == "positive" else torch.randn(depth, 64) / depth**0.5
    return left, right


@pytest.mark.parametrize("depth", [64, 512, 4096])
@pytest.mark.parametrize("kind", ["normal", "positive", "weights"])
class TestMatrixProduct:
    def test_any_order_of_single_precision_sums_is_strict(self, kind: str, depth: int) -> None:
        a, b = operands(kind, depth)
        oracle = a.double() @ b.double()
        eager = deviation.error(a @ b, oracle)
        for step in (1, 32):
            got = deviation.error(in_steps(a, b, step), oracle)
            assert reached(got, eager, depth=depth) == "strict", step

    @pytest.mark.parametrize("operand", OPERANDS)
    def test_rounded_operands_are_detected(self, kind: str, depth: int, operand: str) -> None:
        round_, tier = OPERANDS[operand]
        a, b = operands(kind, depth)
        oracle = a.double() @ b.double()
        got = deviation.error(round_(a) @ round_(b), oracle)
        assert reached(got, deviation.error(a @ b, oracle), depth=depth) == tier

    @pytest.mark.parametrize("operand", OPERANDS)
    def test_two_products_in_a_row_are_detected(self, kind: str, depth: int, operand: str) -> None:
        round_, tier = OPERANDS[operand]
        a, b = operands(kind, depth)
        c = torch.randn(64, 64) / 64**0.5
        oracle = torch.relu(a.double() @ b.double()) @ c.double()
        eager = deviation.error(torch.relu(a @ b) @ c, oracle)
        got = deviation.error(round_(torch.relu(round_(a) @ round_(b))) @ round_(c), oracle)
        assert reached(got, eager, depth=depth) == tier
        ordered = deviation.error(in_steps(torch.relu(in_steps(a, b, 1)), c, 1), oracle)
        assert reached(ordered, eager, depth=depth) == "strict"

    @pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
    def test_sums_in_half_precision_are_not_strict(self, kind: str, depth: int, dtype: Any) -> None:
        a, b = operands(kind, depth)
        oracle = a.double() @ b.double()
        got = deviation.error(in_steps(a, b, 16, dtype), oracle)
        tier = reached(got, deviation.error(a @ b, oracle), depth=depth)
        assert not precision.meets(tier, "tf32" if dtype is torch.bfloat16 else "strict")

    def test_three_tf32_products_for_one_are_strict(self, kind: str, depth: int) -> None:
        a, b = operands(kind, depth)
        oracle = a.double() @ b.double()
        high_a, high_b = rounded(a, 10), rounded(b, 10)
        got = high_a @ high_b + rounded(a - high_a, 10) @ high_b + high_a @ rounded(b - high_b, 10)
        assert reached(deviation.error(got, oracle), deviation.error(a @ b, oracle), depth=depth) == "strict"


def test_tiers_hold_for_products_of_8192_terms() -> None:
    a, b = operands("positive", 8192)
    oracle = a.double() @ b.double()
    eager = deviation.error(a @ b, oracle)
    assert reached(deviation.error(in_steps(a, b, 1), oracle), eager, depth=8192) == "strict"
    for round_, tier in OPERANDS.values():
        got = deviation.error(round_(a) @ round_(b), oracle)
        assert reached(got, eager, depth=8192) == tier


@pytest.mark.parametrize("draw", [torch.rand, torch.randn])
def test_long_means_may_sum_in_any_order(draw: Any) -> None:
    torch.manual_seed(0)
    x = draw(64, 100_000)
    oracle = x.double().mean(1)
    eager = deviation.error(x.mean(1), oracle)
    for step in (1, 128, 1024):
        got = deviation.error(summed(x, step) / x.shape[1], oracle)
        assert reached(got, eager, depth=x.shape[1]) == "strict"
    low = deviation.error(summed(x.half(), 1024).half().float() / x.shape[1], oracle)
    assert reached(low, eager, depth=x.shape[1]) != "strict"


@pytest.mark.parametrize("features", [768, 16384])
@pytest.mark.parametrize(("scale", "shift"), [(1.0, 0.0), (3.0, 10.0)])
def test_honest_norms_and_softmax_are_strict(features: int, scale: float, shift: float) -> None:
    torch.manual_seed(1)
    x = torch.randn(32, features) * scale + shift
    oracle = torch.nn.functional.layer_norm(x.double(), (features,))
    eager = deviation.error(torch.nn.functional.layer_norm(x, (features,)), oracle)
    mean = summed(x, 256)[:, None] / features
    for variance in (summed((x - mean) ** 2, 256), summed(x * x, 256) - features * mean[:, 0] ** 2):
        got = (x - mean) * torch.rsqrt(variance[:, None] / features + 1e-5)
        assert reached(deviation.error(got, oracle), eager, depth=features) == "strict"
    low = deviation.error(torch.nn.functional.layer_norm(rounded(x, 10), (features,)), oracle)
    assert reached(low, eager, depth=features) == "tf32"
    oracle = torch.softmax(x.double(), 1)
    eager = deviation.error(torch.softmax(x, 1), oracle)
    powers = torch.exp2((x - x.amax(1, keepdim=True)) * 1.4426950408889634)
    got = deviation.error(powers / summed(powers, 256)[:, None], oracle)
    assert reached(got, eager, depth=features) == "strict"
    low = deviation.error(torch.softmax(x.bfloat16().float(), 1), oracle)
    assert not precision.meets(reached(low, eager, depth=features), "tf32")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_tasks_use_their_own_rounding(dtype: Any) -> None:
    torch.manual_seed(2)
    a, b = torch.randn(64, 512).to(dtype), (torch.randn(512, 64) / 22).to(dtype)
    oracle = torch.relu(a.double() @ b.double() + 0.1)
    eager = deviation.error(torch.relu(a @ b + torch.tensor(0.1, dtype=dtype)), oracle)
    fused = torch.relu(a.float() @ b.float() + 0.1)
    assert reached(deviation.error(fused.to(dtype), oracle), eager) == "strict"
    assert reached(deviation.error((1.1 * fused).to(dtype), oracle), eager) == "legacy"


def test_small_outputs_do_not_hide_errors() -> None:
    oracle = torch.softmax(torch.rand(16, 4096, dtype=torch.float64), 1)
    eager = deviation.error(oracle.float(), oracle)
    assert reached(deviation.error(torch.zeros(16, 4096), oracle), eager) == "legacy"
    assert reached(deviation.error(torch.full((16, 4096), 1 / 4096), oracle), eager) == "legacy"


def test_one_wrong_element_among_many_costs_the_tier() -> None:
    oracle = torch.randn(1000, 1000, dtype=torch.float64)
    got = oracle.float()
    got[7, 7] += 0.04
    found = deviation.error(got, oracle)
    assert found.rms < 1e-4
    assert reached(found, deviation.error(oracle.float(), oracle)) == "half"


def test_pytorchs_own_tf32_error_is_allowed() -> None:
    eager = Error(1e-7, 1e-6, 1e-7, 0.0)
    candidate = Error(5e-3, 5e-2, 5e-3, 0.0)
    assert reached(candidate, eager) == "half"
    assert reached(candidate, eager, Error(4e-3, 4e-2, 4e-3, 0.0)) == "tf32"


def test_infinities_on_one_side_count() -> None:
    oracle = torch.tensor([1.0, 2.0, 1e300, float("nan")], dtype=torch.float64)
    agreed = deviation.error(torch.tensor([1.0, 2.0, float("inf"), float("nan")]), oracle)
    assert (agreed.rms, agreed.odd) == (0.0, 0)
    lost = deviation.error(torch.tensor([1.0, float("nan"), float("inf"), float("nan")]), oracle)
    assert lost.odd == 1
    assert reached(lost, agreed) == "legacy"
    assert reached(lost, lost) == "strict"


def test_shared_infinities_leave_the_error_as_it_is() -> None:
    oracle = torch.tensor([10.0, 12.0, 14.0], dtype=torch.float64)
    got = torch.tensor([10.5, 12.0, 14.0])
    odd = torch.tensor([math.inf, -math.inf, math.nan])
    both = deviation.error(torch.cat([odd, got, odd]), torch.cat([odd.double(), oracle, odd.double()]))
    assert astuple(both) == pytest.approx(astuple(deviation.error(got, oracle)))
    assert both.spread == pytest.approx(float(oracle.std(unbiased=False)))


EXACT = Error(0.0, 0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("eager", "options", "rms", "peak"),
    [
        (EXACT, {}, 16, 128),
        (replace(EXACT, size=3.0), {}, 48, 384),
        (replace(EXACT, top=50.0), {}, 16, 800),
        (EXACT, {"depth": 80.0**2}, 16, 128),
        (EXACT, {"depth": 200.0**2}, 40, 320),
        (EXACT, {"oracle": "fp32"}, 64, 512),
        (replace(EXACT, ulp=2.0**-10), {"depth": 200.0**2}, 1, 8),
    ],
)
def test_strict_allows_rounding_of_an_exact_reference(
    eager: Error, options: dict[str, Any], rms: int, peak: int
) -> None:
    """In units of the last place."""
    limit = tiers.strict_limit(eager, **options)
    assert (limit.rms / eager.ulp, limit.peak / eager.ulp) == pytest.approx((rms, peak))


def test_looser_limits_are_no_less_than_strict() -> None:
    strict = Limit(rms=0.5, peak=5.0)
    emulated = tiers.emulated_limit(strict, [Error(0.1, 1.0, 0.1, 0.0)])
    assert (emulated.rms, emulated.peak, emulated.noise) == (0.5, 5.0, 0.5)
    constant = tiers.constant_limit("tf32", strict, EXACT)
    assert min(constant.rms, constant.noise, constant.drift) >= 0.5
    assert constant.peak >= 5.0


def test_whole_numbers_are_right_or_wrong() -> None:
    right = deviation.error(torch.tensor([1, 2]), torch.tensor([1, 2]))
    wrong = deviation.error(torch.tensor([1, 3]), torch.tensor([1, 2]))
    assert reached(right, right) == "strict"
    assert reached(wrong, right) == "legacy"


def test_noise_of_cancellation_is_no_lower_precision() -> None:
    x = torch.randn(16, 8, 4096)
    oracle = torch.nn.functional.layer_norm(x.double(), (4096,)).mean(2)  # zero but for rounding
    eager = deviation.error(torch.nn.functional.layer_norm(x, (4096,)).mean(2), oracle)
    flat = x - summed(x.reshape(-1, 4096), 512).reshape(16, 8, 1) / 4096
    other = (flat / (flat.square().mean(2, keepdim=True) + 1e-5).sqrt()).mean(2)
    assert eager.rms > 1
    assert reached(deviation.error(other, oracle), eager) == "strict"


def test_error_is_defined_for_degenerate_and_complex_outputs() -> None:
    assert deviation.error(torch.zeros(0), torch.zeros(0)).rms == 0
    assert deviation.error(torch.ones(5), torch.full((5,), 2.0)).rms == pytest.approx(0.5)
    assert deviation.error(torch.zeros(5), torch.zeros(5)).rms == 0
    assert deviation.error(torch.tensor(1.01), torch.tensor(1.0)).rms == pytest.approx(0.01, rel=1e-4)
    assert deviation.error(torch.tensor([1 + 2j]), torch.tensor([1 + 1j])).peak > 0


def test_large_outputs_are_measured_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    oracle = torch.randn(1000, dtype=torch.float64) + 1e6
    got = oracle.float()
    whole = deviation.error(got, oracle)
    monkeypatch.setattr(deviation, "_CHUNK", 64)
    parts = deviation.error(got, oracle)
    assert parts.rms == pytest.approx(whole.rms, rel=1e-9)
    assert parts.size == pytest.approx(whole.size, rel=1e-9)
    assert (parts.peak, parts.top) == pytest.approx((whole.peak, whole.top))
    assert math.isclose(whole.size, 1e6 / float(oracle.std()), rel_tol=1e-2)


def test_the_worst_of_several_outputs_counts() -> None:
    assert precision.worst(["strict", "half", "tf32"]) == "half"
    assert precision.worst([]) == "strict"
    assert precision.meets("strict", "tf32")
    assert not precision.meets("legacy", "half")
