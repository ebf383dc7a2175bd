"""Contents of timed inputs never repeat, and references can use them."""

import random
from collections.abc import Sequence

import pytest
import torch

from online_judge.evaluator.timing.contents import Contents

LISTS = 12


def draws(count: int = 4) -> Sequence[torch.Generator]:
    return [torch.Generator().manual_seed(number) for number in range(count)]


def filled(
    drawn: Sequence[Sequence[torch.Tensor]], rounds: int = 1, *, structured: bool = False, share: float = 1.0
) -> list[torch.Tensor]:
    """Return the contents of each tensor: one row for each argument list and round."""
    contents = Contents(drawn, random.Random(3))
    if structured:
        contents.keep_structure()
    rows = [torch.empty(LISTS, leaves[0].numel(), dtype=leaves[0].dtype) for leaves in drawn]
    contents.fill(rows, 1.0)
    found = [[row.clone() for row in rows]]
    for _ in range(rounds - 1):
        contents.fill(rows, share)
        found.append([row.clone() for row in rows])
    return [torch.cat([rows[place] for rows in found]) for place in range(len(drawn))]


@pytest.mark.parametrize("structured", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_no_floating_content_comes_twice(dtype: torch.dtype, structured: bool) -> None:
    leaves = [torch.randn(5000, generator=each).to(dtype) for each in draws()]
    (found,) = filled([leaves], rounds=5, structured=structured, share=1 / 16)
    assert len({row.float().numpy().tobytes() for row in found}) == 5 * LISTS


def test_every_stretch_has_new_elements_each_round() -> None:
    leaves = [torch.randn(4096, generator=each) for each in draws()]
    (found,) = filled([leaves], rounds=2, share=1 / 16)
    changed = (found[:LISTS] != found[LISTS:]).view(LISTS, 16, 256).float()
    assert bool(changed.any(2).all())
    assert float(changed.mean()) < 1 / 16


@pytest.mark.parametrize("structured", [False, True])
def test_no_complex_content_comes_twice(structured: bool) -> None:
    leaves = [torch.randn(500, generator=each, dtype=torch.complex64) for each in draws()]
    (found,) = filled([leaves], rounds=3, structured=structured, share=1 / 16)
    assert len({row.numpy().tobytes() for row in found}) == 3 * LISTS


def test_elements_keep_their_place_in_the_draw() -> None:
    leaves = [torch.randn(500, generator=each) for each in draws()]
    (found,) = filled([leaves], rounds=3, share=1 / 16)
    assert bool(torch.stack([found == leaf for leaf in leaves]).any(0).all())


def test_integer_tensors_of_a_list_are_one_draw() -> None:
    offsets = [torch.tensor([0, number, 9]) for number in range(4)]
    lengths = [torch.tensor([number, 9 - number], dtype=torch.int32) for number in range(4)]
    mixed = [torch.randn(20, generator=each) for each in draws()]
    found, differences, _ = filled([offsets, lengths, mixed], rounds=3)
    assert torch.equal(found.diff(), differences.long())
    assert len({tuple(row.tolist()) for row in found}) == 4


@pytest.mark.parametrize("structured", [False, True])
def test_structure_is_kept_when_asked_for(structured: bool) -> None:
    halves = [torch.randn(30, 30, generator=each) for each in draws()]
    (found,) = filled([[(half @ half.T + torch.eye(30)).flatten() for half in halves]], structured=structured)
    failures = torch.linalg.cholesky_ex(found.view(LISTS, 30, 30)).info
    assert bool((failures == 0).all()) is structured


def test_equal_elements_stay_in_a_blend() -> None:
    mask = torch.tensor([0.0, -torch.inf, torch.inf, 1.0])
    (found,) = filled([[mask, mask, mask]], structured=True)
    assert bool((found == mask).all())


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_infinities_in_other_places_blend_without_nan(dtype: torch.dtype) -> None:
    masks = [torch.where(torch.rand(64, generator=each) < 0.5, -torch.inf, 0.0).to(dtype) for each in draws()]
    (found,) = filled([masks], structured=True)
    assert all(any(torch.equal(row, mask) for mask in masks) for row in found)


def test_tensors_of_a_list_blend_alike() -> None:
    one = [torch.rand(50, generator=each) for each in draws()]
    (left, right) = filled([one, [2 * leaf for leaf in one]], structured=True)
    torch.testing.assert_close(2 * left, right)


def test_eight_bit_floats_are_whole_draws() -> None:
    leaves = [torch.randn(64, generator=each).to(torch.float8_e4m3fn) for each in draws()]
    (found,) = filled([leaves], structured=True)
    assert all(any(torch.equal(row.float(), leaf.float()) for leaf in leaves) for row in found)


def test_lists_without_tensors_have_no_contents() -> None:
    Contents([], random.Random(0)).fill([], 1.0)
