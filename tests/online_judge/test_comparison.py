import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.dialects.schema import Tolerance
from online_judge.evaluator.correctness import comparison
from online_judge.evaluator.correctness.comparison import difference, equals, without_permitted


def test_equal_is_no_difference() -> None:
    want = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
    assert difference(want.clone(), want, 1e-4) is None


@given(st.floats(-100, 100), st.floats(0, 10), st.floats(1e-4, 0.1))
def test_tolerance_is_absolute_plus_relative(want: float, error: float, tolerance: float) -> None:
    reference = torch.tensor([want], dtype=torch.float64)
    found = difference(reference + error, reference, tolerance)
    actual = float(((reference + error) - reference).abs())
    assert (found is None) == (actual <= tolerance + tolerance * abs(want))


def test_difference_describes_the_wrong_elements() -> None:
    want = torch.zeros(2, 3)
    got = torch.tensor([[0.0, 2.0, 0.0], [0.0, 0.0, -4.0]])
    found = difference(got, want, 0.05)
    assert found is not None
    assert (found.nonfinite, found.wrong, found.total) == (0, 2, 6)
    assert (found.largest, found.average) == (4.0, 1.0)
    assert [(e.index, e.got, e.want) for e in found.examples] == [((0, 1), "2", "0"), ((1, 2), "-4", "0")]


@pytest.mark.parametrize(
    ("got", "want"),
    [
        (float("nan"), 1.0),
        (float("inf"), 1.0),
        (1.0, float("nan")),
        (1.0, float("inf")),
        (-float("inf"), float("inf")),
        (float("nan"), float("inf")),
    ],
)
def test_any_deviation_of_finiteness_is_nonfinite(got: float, want: float) -> None:
    found = difference(torch.tensor([0.0, got]), torch.tensor([0.0, want]), 100.0)
    assert found is not None
    assert found.nonfinite == found.wrong


@pytest.mark.parametrize("dtype", [torch.int64, torch.bool, torch.uint8])
def test_whole_numbers_must_be_equal(dtype: torch.dtype) -> None:
    want = torch.tensor([1, 0, 1]).to(dtype)
    assert difference(want.clone(), want, 1e-4) is None
    found = difference(torch.tensor([1, 1, 1]).to(dtype), want, 100.0)
    assert found is not None
    assert found.examples[0].index == (1,)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("factor", [0.0, 0.999, 1 - 1e-7, 1 + 1e-7, 1.001, 3.0])
@pytest.mark.parametrize("unit", [1.0, 7.0])
def test_single_precision_decides_as_double_does(
    dtype: torch.dtype, factor: float, unit: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Errors near the limit, for which single precision must not decide."""
    want = torch.randn(100, generator=torch.Generator().manual_seed(2)).to(dtype)
    want[:4] = torch.tensor([0.0, 1e-8, 6e4, -6e4])
    got = (want.double() + factor * (1e-2 * unit + 1e-2 * want.double().abs())).to(dtype)
    found = [difference(got[at : at + 1], want[at : at + 1], 1e-2, unit=unit) for at in range(100)]
    monkeypatch.setattr(comparison, "_is_clearly_equal", lambda *compared: False)
    assert found == [difference(got[at : at + 1], want[at : at + 1], 1e-2, unit=unit) for at in range(100)]
    if factor in (0.0, 3.0):
        assert (found[50] is None) == (factor == 0.0)


@pytest.mark.parametrize(
    ("got", "want"), [(1.0, math.inf), (math.inf, 1.0), (3e38, -3e38), (math.nan, math.nan)]
)
@pytest.mark.parametrize("tolerance", [1e-2, 10.0])
def test_single_precision_says_nothing_of_overflow(got: float, want: float, tolerance: float) -> None:
    one, other = torch.tensor([got, 0.0]), torch.tensor([want, 0.0])
    assert not comparison._is_clearly_equal(one, other, tolerance, 1.0)


def test_large_tensors_are_compared_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_CHUNK", 4)
    want = torch.zeros(3, 5)
    got = want.clone()
    got[0, 3] = got[1, 0] = got[2, 4] = 1.0
    found = difference(got, want, 0.05)
    assert found is not None
    assert [example.index for example in found.examples] == [(0, 3), (1, 0), (2, 4)]
    assert found.average == pytest.approx(0.2)


@pytest.mark.parametrize(
    ("got", "want", "average"),
    [
        ([1.0], [3.0], 2.0),
        ([1.0, 1.0, 1.0, 3.0], [1.0, 1.0, 1.0, 1.0], 0.5),
        ([float("inf"), 1.0, 3.0], [float("inf"), 1.0, 1.0], 1.0),  # of two finite elements
        ([float("nan"), 0.0], [0.0, float("nan")], 0.0),
        ([1, 1, 1, 7], [1, 1, 1, 1], 1.5),
    ],
)
def test_average_error_is_over_finite_elements(got: list[float], want: list[float], average: float) -> None:
    found = difference(torch.tensor(got), torch.tensor(want), 1e-4)
    assert found is not None
    assert found.average == average


def test_one_element_stands_for_every_element() -> None:
    one = torch.tensor(1, dtype=torch.uint8)
    assert equals(one, torch.ones(3, 5, dtype=torch.uint8), 1e-4)
    want = torch.ones(2**24 + 1, dtype=torch.uint8)  # one more than is compared at a time
    want[-1] = 2
    assert not equals(one, want, 1e-4)


def test_empty_and_scalar_and_complex_outputs_are_compared() -> None:
    assert difference(torch.zeros(0, 3), torch.zeros(0, 3), 0.1) is None
    assert difference(torch.tensor(1.0), torch.tensor(1.0), 0.1) is None
    assert difference(torch.tensor([1 + 1j]), torch.tensor([1 + 2j]), 0.1) is not None


OWN = Tolerance(max_atol=0.1, max_rtol=0.1, required_matched_ratio=0.75, max_error_cap=5.0)


@pytest.mark.parametrize(
    ("got", "changes", "right"),
    [
        ([10.9, 1.0, 1.0, 1.0], {"required_matched_ratio": 1.0}, True),
        ([11.05, 1.0, 1.0, 1.0], {"required_matched_ratio": 1.0}, True),
        ([11.05, 1.0, 1.0, 1.0], {"required_matched_ratio": 1.0, "added": False}, False),
        ([14.0, 1.0, 1.0, 1.0], {}, True),
        ([14.0, 2.0, 1.0, 1.0], {}, False),
        ([16.0, 1.0, 1.0, 1.0], {}, False),
        ([math.nan, 1.0, 1.0, 1.0], {}, False),
    ],
)
def test_tolerance_of_a_problem_counts_elements(got: list[float], changes: dict, right: bool) -> None:
    want = torch.tensor([10.0, 1.0, 1.0, 1.0])
    found = difference(torch.tensor(got), want, OWN.model_copy(update=changes))
    assert (found is None) is right


@pytest.mark.parametrize("wrong", [7, 8])
def test_exactly_the_required_share_is_right(wrong: int) -> None:
    got, want = torch.zeros(100), torch.zeros(100)
    got[:wrong] = 1.0
    found = difference(got, want, Tolerance(required_matched_ratio=0.93))
    assert (found is None) is (wrong == 7)


@pytest.mark.parametrize(
    ("total", "wrong", "right"),
    [(100, 1, True), (100, 9, True), (100, 15, False), (4096, 60, True), (4096, 120, False)],
)
def test_sample_may_be_off_by_chance(total: int, wrong: int, right: bool) -> None:
    got, want = torch.zeros(total), torch.zeros(total)
    got[:wrong] = 1.0
    found = difference(got, want, Tolerance(required_matched_ratio=0.99), sampled=True)
    assert (found is None) is right


def test_sampling_allows_no_errors_in_exact_problems() -> None:
    got, want = torch.zeros(100), torch.zeros(100)
    got[3] = 1.0
    assert difference(got, want, Tolerance(required_matched_ratio=1.0), sampled=True) is not None
    assert difference(got, want, 0.05, sampled=True) is not None


def test_equality_by_a_problems_tolerance_counts_elements() -> None:
    want = torch.tensor([[10.0, 0.0], [0.0, 0.0]])
    assert equals(torch.zeros(()), want, OWN.model_copy(update={"max_error_cap": None}))
    assert not equals(torch.zeros(()), want, OWN)
    assert not equals(torch.ones(()), want, OWN)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float8_e4m3fn, torch.int64])
def test_permitted_errors_can_be_left_out(dtype: torch.dtype) -> None:
    got, want = torch.tensor([[8.0, 2.0], [3.0, 4.0]]).to(dtype), torch.tensor([[1.0, 2.0], [3.0, 4.0]])
    found = without_permitted(got, want.to(dtype), OWN)
    assert torch.equal(found.float(), want)
    assert float(got.float()[0, 0]) == 8.0


def test_error_cap_applies_within_relative_tolerance() -> None:
    got, want = torch.tensor([1e6 + 100, 1.0]), torch.tensor([1e6, 1.0])
    assert difference(got, want, Tolerance(max_rtol=1e-2)) is None
    found = difference(got, want, Tolerance(max_rtol=1e-2, max_error_cap=1.0))
    assert found is not None
    assert found.wrong == 1


@pytest.mark.parametrize(("off", "right"), [(40.0, True), (60.0, False)])
def test_cap_grows_with_the_output(off: float, right: bool) -> None:
    got, want = torch.tensor([off, 1.0, 1.0, 1.0]), torch.tensor([0.0, 1.0, 1.0, 1.0])
    assert difference(got, want, OWN) is not None
    assert (difference(got, want, OWN, unit=10.0) is None) is right
