import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from online_judge.evaluator.correctness import comparison
from online_judge.evaluator.correctness.comparison import difference, equals


def test_equal_is_no_difference() -> None:
    want = torch.tensor([1.0, float("nan"), float("inf"), -float("inf")])
    assert difference(want.clone(), want, 1e-4) is None


@given(st.floats(-100, 100), st.floats(0, 10), st.floats(1e-4, 0.1))
def test_tolerance_is_absolute_plus_relative(want: float, error: float, tolerance: float) -> None:
    reference = torch.tensor([want], dtype=torch.float64)
    found = difference(reference + error, reference, tolerance)
    actual = float(((reference + error) - reference).abs())
    assert (found is None) == (actual <= tolerance + tolerance * abs(want))


def test_counts_indices_and_errors_are_those_of_the_wrong_elements() -> None:
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
