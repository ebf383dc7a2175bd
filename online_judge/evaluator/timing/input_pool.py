"""Argument lists for timed calls, whose contents the candidate has never seen before."""

from __future__ import annotations

import random
from typing import Any

import torch

from online_judge.common.trees import Slot, UnsupportedTree, put_together, take_apart
from online_judge.evaluator import costs
from online_judge.evaluator.correctness import oracles
from online_judge.evaluator.reference import Reference, ReferenceFailed
from online_judge.protocol.shared_tensors import Parcel, Place, SharedTensors, lay_out

_DRAWS = 4
_FRESH = 1 / 16
"""Share of each floating tensor that :meth:`InputPool.refresh` replaces."""
_CHUNK_BYTES = 2**29


class InputPool:
    """``count`` argument lists of one structure in memory that is shared with the candidate process.

    Each element is what stands in its place in one of a few draws of ``get_inputs`` under hidden seeds,
    chosen at random element by element; tensors that are not floating are taken from one draw as a whole. So
    shapes, domains and structures such as masks stay, while no floating content comes twice.
    """

    def __init__(self, reference: Reference, name: str, count: int, rng: random.Random) -> None:
        """Draw inputs named ``name`` and share them.

        Raises:
            ReferenceFailed: the inputs cannot be drawn or shared.
            DriverError: there is too little memory.
        """
        self._rng = rng
        self._generator = torch.Generator("cuda").manual_seed(rng.getrandbits(60))
        number_of_draws = min(count, _DRAWS) if count > 1 else 2
        draws = [reference.inputs(f"{name}:{number}") for number in range(number_of_draws)]
        try:
            trees = [take_apart(draw) for draw in draws]
        except UnsupportedTree as error:
            raise ReferenceFailed(f"get_inputs() gives {error}, which cannot be judged") from error
        places, self.set_bytes = lay_out(trees[0].leaves)
        if any(lay_out(tree.leaves)[0] != places for tree in trees):
            raise ReferenceFailed("get_inputs() gives tensors of other shapes under other seeds")
        self.shared = SharedTensors(count * self.set_bytes, cuda=True)
        self.rows = rows(self.shared, places, count, self.set_bytes)
        self._drawn = [
            [_in_memory_order(tree.leaves[leaf], place) for tree in trees]
            for leaf, place in enumerate(places)
        ]
        self.parcel = repeated(self.shared, trees[0].shape, places, count, self.set_bytes)
        leaves = tuple(self.shared.view(place) for place in self.parcel.places)
        self.sets: list[list[Any]] = put_together(self.parcel.shape, leaves)
        self._mix(1.0)

    def refresh(self, *, whole: bool = False) -> None:
        """Give every argument list contents that it never had: new in part, or as a ``whole``."""
        self._mix(1.0 if whole else _FRESH)

    def close(self) -> None:
        """Free the draws; the contents stay as they are from now on."""
        self._drawn.clear()

    def copy_of(self, number: int) -> list[Any]:
        """Return private tensors with the contents of one argument list."""
        return oracles.copied(self.sets[number])

    def put_back(self, copies: dict[int, list[Any]]) -> None:
        """Undo changes of argument lists."""
        for number, copy in copies.items():
            for held, leaf in zip(take_apart(self.sets[number]).leaves, take_apart(copy).leaves, strict=True):
                held.copy_(leaf)

    def is_unchanged(self, number: int, copy: list[Any]) -> bool:
        """Say whether an argument list still is what :meth:`copy_of` gave, to the bit."""
        now, then = take_apart(self.sets[number]).leaves, take_apart(copy).leaves
        return all(costs.same_bits(left, right) for left, right in zip(now, then, strict=True))

    def _mix(self, share: float) -> None:
        """Take a share of each tensor, one stretch of it, from the draws anew."""
        for held, leaves in zip(self.rows, self._drawn, strict=True):
            count, size = held.shape
            if not held.is_floating_point():
                drawn = torch.randint(len(leaves), (count,), generator=self._generator, device="cuda")
                for row, number in zip(held, drawn.tolist(), strict=True):
                    row.copy_(leaves[number])
                continue
            length = min(size, max(int(size * share), 256))
            start = self._rng.randrange(size - length + 1)
            step = max(1, _CHUNK_BYTES // max(length * held.element_size(), 1))
            for row in range(0, count, step):
                part = held[row : row + step, start : start + length]
                one, other = self._rng.sample(range(len(leaves)), 2)
                mask = torch.empty(part.shape, dtype=torch.bool, device="cuda")
                mask.random_(generator=self._generator)
                stretch = [leaf[start : start + length] for leaf in (leaves[one], leaves[other])]
                part.copy_(torch.where(mask, *stretch))
        torch.cuda.synchronize()


def rows(shared: SharedTensors, places: tuple[Place, ...], count: int, stride: int) -> list[torch.Tensor]:
    """Return each of ``places``, repeated every ``stride`` bytes, as one tensor ``(count, elements)``."""
    found = []
    for place in places:
        size = place.dtype.itemsize
        row = Place(place.offset, (count, place.nbytes // size), (stride // size, 1), place.dtype)
        found.append(shared.view(row))
    return found


def repeated(shared: SharedTensors, shape: Any, places: tuple[Place, ...], count: int, stride: int) -> Parcel:
    """Describe ``count`` trees of one shape, one every ``stride`` bytes."""
    per = len(places)
    shapes = [
        put_together(shape, tuple(Slot(per * row + leaf) for leaf in range(per))) for row in range(count)
    ]
    everywhere = tuple(place.moved(row * stride) for row in range(count) for place in places)
    return shared.parcel(shapes, everywhere)


def _in_memory_order(leaf: torch.Tensor, place: Place) -> torch.Tensor:
    """Return elements, laid out as at ``place``, in the order of memory; the tensor itself if it lies so."""
    elements = place.nbytes // place.dtype.itemsize
    if leaf.stride() == place.strides and leaf.numel() == elements:
        return torch.as_strided(leaf, (elements,), (1,), leaf.storage_offset())
    laid = torch.empty_strided(place.shape, place.strides, dtype=place.dtype, device="cuda")
    laid.copy_(leaf)
    return torch.as_strided(laid, (elements,), (1,))
