"""Make contents of timed inputs from a few draws of ``get_inputs``; no floating content comes twice."""

from __future__ import annotations

import random
from collections.abc import Sequence

import torch

from online_judge.common.modules import bits

_CHUNK_BYTES = 2**29
_LEAST = 256
"""New elements of a tensor, where it has so many."""


class Contents:
    """Fills argument lists with contents that they never had before.

    Each element of a floating or complex tensor is what stands in its place in one of the draws, chosen at
    random element by element. All other tensors of an argument list are those of one draw, so that indices
    fit their offsets. Shapes, domains and structures such as masks stay.

    Once :meth:`keep_structure` is called, all floating tensors of an argument list are blends of the same two
    draws, but equal elements and infinities are those of the first. A blend keeps what any convex combination
    keeps: symmetry, order, positive definiteness.
    """

    def __init__(
        self, drawn: Sequence[Sequence[torch.Tensor]], rng: random.Random, *, one_draw: bool = False
    ) -> None:
        """``drawn`` holds the draws of each tensor, flat in memory order, all on one device.

        With ``one_draw`` tensors that are not floating are always those of the first draw.
        """
        self._one_draw = one_draw
        self._drawn = drawn
        self._rng = rng
        self._blends = False
        if drawn:
            self._generator = torch.Generator(drawn[0][0].device).manual_seed(rng.getrandbits(60))

    def keep_structure(self) -> None:
        self._blends = True

    def fill(self, rows: Sequence[torch.Tensor], share: float) -> None:
        """Write new contents into a share of each tensor; into all of it if they blend.

        One of so many neighbours is new, at random: were it one stretch, a candidate that keeps its outputs
        would have to compute only what depends on that stretch.
        ``rows`` has each tensor as ``(argument lists, elements)``.
        """
        if not rows:
            return
        draws = range(len(self._drawn[0]))
        pairs = [self._rng.sample(draws, 2) for _ in range(rows[0].shape[0])]
        weights = [self._rng.random() for _ in pairs]
        for held, leaves in zip(rows, self._drawn, strict=True):
            numbers = held.is_floating_point() or held.is_complex()
            if numbers and not self._blends:
                self._mix(held, leaves, share)
                continue
            for row, (one, other), weight in zip(held, pairs, weights, strict=True):
                if numbers and held.element_size() > 1:
                    _blend(row, leaves[one], leaves[other], weight)
                else:
                    row.copy_(leaves[0 if self._one_draw and not numbers else one])

    def _mix(self, held: torch.Tensor, leaves: Sequence[torch.Tensor], share: float) -> None:
        count, size = held.shape
        every = min(round(1 / share), size // _LEAST)
        places: slice | torch.Tensor = slice(None)
        length = size
        if every > 1:
            places = torch.arange(0, size - every + 1, every, device=held.device)
            places += torch.randint(every, places.shape, generator=self._generator, device=held.device)
            length = len(places)
        step = max(1, _CHUNK_BYTES // max(length * held.element_size(), 1))
        for row in range(0, count, step):
            part = bits(held)[row : row + step]
            one, other = self._rng.sample(range(len(leaves)), 2)
            mask = torch.empty((len(part), length), dtype=torch.bool, device=part.device)
            mask.random_(generator=self._generator)
            part[:, places] = torch.where(mask, bits(leaves[one])[places], bits(leaves[other])[places])


def _blend(row: torch.Tensor, one: torch.Tensor, other: torch.Tensor, weight: float) -> None:
    step = _CHUNK_BYTES // row.element_size()
    for start in range(0, row.numel(), step):
        left, right = one[start : start + step], other[start : start + step]
        kept = (left == right) | left.isinf() | right.isinf()
        row[start : start + step] = torch.where(kept, left, torch.lerp(left, right, weight))
