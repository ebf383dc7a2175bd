"""Outputs against expected outputs; only the referee calls this."""

from __future__ import annotations

import math
from typing import Any

import torch

from adaexplore.core.verdict import Status
from online_judge.evaluation.findings import Difference, Mismatch

_CHUNK = 2**24
MAX_EXAMPLES = 5


def difference(got: Any, want: Any, tolerance: float) -> Difference | None:
    """None when ``got`` is ``want`` within ``|got - want| <= tolerance + tolerance * |want|``.

    Both have the same shape and dtype. Integers and booleans must be equal. NaN and infinities
    must stand exactly where the expected output has them; any deviation there is ``nonfinite``.
    """
    exact = not (want.is_floating_point() or want.is_complex())
    wide = torch.complex128 if want.is_complex() else torch.float64
    left, right = got.reshape(-1), want.reshape(-1)
    total = right.numel()
    wrong = nonfinite = finite = 0
    largest = summed = 0.0
    first: list[int] = []
    for start in range(0, total, _CHUNK):
        a, b = left[start : start + _CHUNK], right[start : start + _CHUNK]
        if exact:
            bad = a != b
            error = (a.to(wide) - b.to(wide)).abs()
        else:
            a, b = a.to(wide), b.to(wide)
            both = torch.isfinite(a) & torch.isfinite(b)
            same = (a == b) | (torch.isnan(a) & torch.isnan(b))
            error = torch.where(both, (a - b).abs(), torch.zeros((), dtype=torch.float64, device=a.device))
            odd = ~both & ~same
            nonfinite += int(odd.sum())
            bad = odd | (both & (error > tolerance + tolerance * b.abs()))
            finite += int(both.sum())
        wrong += int(bad.sum())
        largest = max(largest, float(error.max())) if error.numel() else largest
        summed += float(error.sum())
        if len(first) < MAX_EXAMPLES:
            hits = bad.nonzero().reshape(-1)[: MAX_EXAMPLES - len(first)]
            first.extend(start + int(hit) for hit in hits)
    if not wrong:
        return None
    examples = tuple(
        Mismatch(_unravel(flat, tuple(want.shape)), _show(left[flat]), _show(right[flat])) for flat in first
    )
    status = Status.NONFINITE if nonfinite else Status.WRONG_VALUE
    return Difference(status, examples, wrong, total, largest, summed / max(total if exact else finite, 1))


def _unravel(flat: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    index: list[int] = []
    for size in reversed(shape):
        index.append(flat % size)
        flat //= size
    return tuple(reversed(index))


def _show(value: Any) -> str:
    number = value.item()
    if isinstance(number, float):
        return f"{number:.6g}" if math.isfinite(number) else str(number)
    return str(number)
