"""Outputs against expected outputs; only the evaluator calls this."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy
import torch

from online_judge.evaluator.correctness import patterns
from online_judge.protocol.findings import Difference, Mismatch

_CHUNK = 2**24
_SAMPLE = 2**14
MAX_EXAMPLES = 5


def difference(
    got: torch.Tensor, want: torch.Tensor, tolerance: float, *, unit: float = 1.0
) -> Difference | None:
    """Return None when ``got`` is ``want`` within ``|got - want| <= tolerance * (unit + |want|)``.

    Both have the same shape and dtype. Integers and booleans must be equal. NaN and infinities
    must be exactly where the expected output has them; elements that deviate there are ``nonfinite``.
    ``unit`` is how much larger the output is than that of the problem's own inputs, for variants of these.
    """
    left, right = got.reshape(-1), want.reshape(-1)
    exact = not (want.is_floating_point() or want.is_complex())
    total = right.numel()
    wrong = nonfinite = finite = 0
    largest = summed = 0.0
    first: list[int] = []
    for start, part in _compared(left, right, tolerance, unit):
        nonfinite += int(part.odd.sum()) if part.odd is not None else 0
        finite += int(part.both.sum()) if part.both is not None else 0
        wrong += int(part.bad.sum())
        largest = max(largest, float(part.error.max()))
        summed += float(part.error.sum())
        if len(first) < MAX_EXAMPLES:
            hits = part.bad.nonzero().reshape(-1)[: MAX_EXAMPLES - len(first)]
            first.extend(start + int(hit) for hit in hits)
    if not wrong:
        return None
    examples = tuple(
        Mismatch(
            tuple(int(index) for index in numpy.unravel_index(flat, tuple(want.shape))),
            _show(left[flat]),
            _show(right[flat]),
        )
        for flat in first
    )
    average = summed / max(total if exact else finite, 1)
    places = _some_wrong(left, right, tolerance, unit, wrong)
    pattern = patterns.describe(got, want, places, tolerance)
    return Difference(examples, wrong, nonfinite, total, largest, average, pattern)


def equals(got: torch.Tensor, want: torch.Tensor, tolerance: float) -> bool:
    """Say whether :func:`difference` finds none; ``got`` may be a single element, which counts for all."""
    right = want.reshape(-1)
    left = got.expand(right.numel()) if got.dim() == 0 else got.reshape(-1)
    return not any(bool(part.bad.any()) for _, part in _compared(left, right, tolerance, 1.0))


@dataclass(frozen=True)
class _Part:
    """A part of two tensors, compared: which elements are wrong, and absolute differences of finite ones.

    Elements that are ``odd`` are not finite where they should be, or should not be and are; those that are
    ``both`` are finite on both sides. None for integers and booleans.
    """

    bad: torch.Tensor
    error: torch.Tensor
    odd: torch.Tensor | None = None
    both: torch.Tensor | None = None


def _compared(
    left: torch.Tensor, right: torch.Tensor, tolerance: float, unit: float
) -> Iterator[tuple[int, _Part]]:
    """Compare part by part; gives the index of each part's first element too."""
    for start in range(0, right.numel(), _CHUNK):
        yield start, _compare(left[start : start + _CHUNK], right[start : start + _CHUNK], tolerance, unit)


def _compare(a: torch.Tensor, b: torch.Tensor, tolerance: float, unit: float) -> _Part:
    wide = torch.complex128 if b.is_complex() else torch.float64
    if not (b.is_floating_point() or b.is_complex()):
        return _Part(a != b, (a.to(wide) - b.to(wide)).abs())
    a, b = a.to(wide), b.to(wide)
    both = torch.isfinite(a) & torch.isfinite(b)
    same = (a == b) | (torch.isnan(a) & torch.isnan(b))
    error = torch.where(both, (a - b).abs(), torch.zeros((), dtype=torch.float64, device=a.device))
    odd = ~both & ~same
    return _Part(odd | (both & (error > tolerance * unit + tolerance * b.abs())), error, odd, both)


def _some_wrong(
    left: torch.Tensor, right: torch.Tensor, tolerance: float, unit: float, wrong: int
) -> torch.Tensor:
    """Return flat indices of wrong elements in rising order: all, or a random part where there are many."""
    generator = torch.Generator().manual_seed(0)
    found: list[torch.Tensor] = []
    for start, part in _compared(left, right, tolerance, unit):
        hits = part.bad.nonzero().reshape(-1) + start
        share = -(-_SAMPLE * hits.numel() // wrong)
        if hits.numel() > share:
            drawn = torch.randint(0, hits.numel(), (share,), generator=generator).unique()
            hits = hits[drawn.to(hits.device)]
        found.append(hits)
    return torch.cat(found)


def _show(value: torch.Tensor) -> str:
    number = value.item()
    return f"{number:.6g}" if isinstance(number, float) else str(number)
