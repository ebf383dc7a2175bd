from typing import Any

import pytest
import torch

from online_judge.checks.facts.findings import Difference
from online_judge.evaluator.correctness import comparison
from online_judge.evaluator.correctness.comparison import difference
from online_judge.verdict import feedback


def pattern(got: Any, want: Any) -> str:
    found = difference(got, want, 0.05)
    assert found is not None
    return found.pattern


@pytest.fixture
def want() -> Any:
    torch.manual_seed(0)
    return torch.randn(67, 96)


def test_an_unwritten_output_is_described(want: Any) -> None:
    got = want.clone()
    got[64:] = float("nan")
    text = pattern(got, want)
    assert "NaN" in text
    assert "only indices 64 to 66, the last tile or border, of dimension 0 (size 67)" in text


def test_zeros_and_their_places_are_described(want: Any) -> None:
    got = want.clone()
    got[::4] = 0
    assert pattern(got, want) == (
        "the wrong elements are zero; only every 4th index, from 0 on, of dimension 0 (size 67)"
    )


def test_strided_wrong_columns_are_described(want: Any) -> None:
    got = want.clone()
    got[:, 3::8] = 9 * torch.randn(67, 12)
    assert pattern(got, want) == "only every 8th index, from 3 on, of dimension 1 (size 96)"


def test_constant_factor_and_offset_are_reported(want: Any) -> None:
    assert pattern(want * 0.5, want) == "the wrong elements are 0.5 times what they should be"
    assert pattern(want + 2, want) == "the wrong elements are off by 2"
    assert pattern(torch.full_like(want, 3.0), want) == "the wrong elements are all 3"


@pytest.mark.parametrize("shape", [(20, 30), (24, 24), (3, 20, 30)])
def test_transposed_storage_is_described(shape: tuple[int, ...]) -> None:
    want = torch.randn(shape)
    got = want.transpose(-1, -2).contiguous().view(shape)
    assert pattern(got, want) == "the last two dimensions look transposed"


def test_a_border_is_described() -> None:
    want = torch.randn(2, 3, 64, 64)
    got = want.clone()
    got[:, :, 0] += torch.randn(2, 3, 64) * 3
    got[..., -1] += torch.randn(2, 3, 64) * 3
    assert pattern(got, want) == "only within 1 of the border of the last dimensions"


def test_short_dimension_is_no_border() -> None:
    want = torch.randn(8, 64)
    got = want.clone()
    torch.manual_seed(1)
    got.view(-1)[torch.randperm(512)[:40]] += 3 * torch.randn(40) + 9
    assert "border" not in pattern(got, want)


def test_off_by_one_is_no_factor() -> None:
    want = torch.arange(500, 900)
    assert pattern(want + 1, want) == "the wrong elements are off by 1"


def test_one_row_is_described(want: Any) -> None:
    got = want.clone()
    got[5] += 5 * torch.randn(96)
    assert pattern(got, want) == "only index 5 of dimension 0 (size 67)"


def test_nothing_is_made_up(want: Any) -> None:
    assert pattern(torch.randn_like(want), want) == ""
    assert pattern(torch.tensor(2.0), torch.tensor(1.0)) == ""
    assert pattern(torch.tensor([1, 5, 3]), torch.tensor([1, 2, 3])) == "only index 1 of dimension 0 (size 3)"


@pytest.mark.parametrize("dtype", [torch.bool, torch.int64, torch.complex64, torch.bfloat16])
def test_all_dtypes_can_be_described(dtype: torch.dtype) -> None:
    want = (torch.arange(12) % 3).to(dtype)
    assert isinstance(pattern(torch.ones_like(want), want), str)


def test_many_wrong_elements_are_sampled(want: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison, "_SAMPLE", 512)
    monkeypatch.setattr(comparison, "_CHUNK", 1000)
    got = want.clone()
    got[:, 64:] = 0
    assert "the wrong elements are zero; only indices 64 to 95, the last tile" in pattern(got, want)


def test_feedback_names_the_pattern_within_its_bounds(want: Any) -> None:
    found = difference(want * 0.5, want, 0.05)
    assert isinstance(found, Difference)
    text = feedback.of_difference(found, "the output").feedback
    assert "pattern: the wrong elements are 0.5 times what they should be\nfirst wrong elements:" in text
    assert len(text.encode()) <= feedback.MAX_BYTES
