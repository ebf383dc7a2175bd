"""Compare outputs with expected outputs; only the evaluator calls this."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy
import torch

from adaexplore.core.dialects.schema import Tolerance
from online_judge.checks.facts.findings import Difference, Mismatch
from online_judge.common.modules import bits, is_float8
from online_judge.evaluator.correctness import patterns

_CHUNK = 2**24
_SAMPLE = 2**14
_ROUNDING = 1e-6
"""More than single precision loses, relative, in an error and its limit."""
MAX_EXAMPLES = 5
_CHANCE = 25.0
"""A sample is wrong if a right output would give one this bad less than once in exp(25) times."""
_SINGLE = (torch.float32, torch.float16, torch.bfloat16)


def difference(
    got: torch.Tensor,
    want: torch.Tensor,
    tolerance: float | Tolerance,
    *,
    unit: float = 1.0,
    sampled: bool = False,
) -> Difference | None:
    """Return None when ``got`` is ``want`` within ``|got - want| <= tolerance * (unit + |want|)``.

    A problem's own :class:`Tolerance` may permit some wrong elements, but none that is not finite. If the
    elements are ``sampled`` from an output, chance may add to the wrong ones.

    Both have the same shape and dtype. Integers and booleans must be equal. NaN and infinities
    must be exactly where the expected output has them; elements that deviate there are ``nonfinite``.
    A float8 may always be the neighbour of the expected value: the format is that coarse.
    ``unit`` is a factor on the absolute tolerance: for variants of the inputs how much larger the output is,
    for gradients see :meth:`online_judge.evaluator.reference.Reference.units`.
    """
    left, right = got.reshape(-1), want.reshape(-1)
    if _is_clearly_equal(left, right, tolerance, unit):
        return None
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
    own = tolerance if isinstance(tolerance, Tolerance) and not nonfinite else None
    if own is not None and _lets(own, wrong, largest / unit, total, sampled=sampled):
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
    relative = tolerance.max_rtol if isinstance(tolerance, Tolerance) else tolerance
    pattern = patterns.describe(got, want, places, relative)
    return Difference(examples, wrong, nonfinite, total, largest, average, pattern)


def equals(got: torch.Tensor, want: torch.Tensor, tolerance: float | Tolerance, *, unit: float = 1.0) -> bool:
    """Return True if :func:`difference` finds none; a single element in ``got`` stands for all."""
    right = want.reshape(-1)
    left = got.expand(right.numel()) if got.dim() == 0 else got.reshape(-1)
    if isinstance(tolerance, Tolerance):
        return difference(left, right, tolerance, unit=unit) is None
    if _is_clearly_equal(left, right, tolerance, unit):
        return True
    return not any(bool(part.bad.any()) for _, part in _compared(left, right, tolerance, unit))


def without_permitted(
    got: torch.Tensor, want: torch.Tensor, tolerance: Tolerance, *, unit: float = 1.0
) -> torch.Tensor:
    """Return an accepted output with its permitted wrong elements replaced by the expected ones."""
    fixed, right = got.clone().reshape(-1), want.reshape(-1)
    for start, part in _compared(fixed, right, tolerance, unit):
        places = part.bad.nonzero().reshape(-1) + start
        bits(fixed)[places] = bits(right)[places]
    return fixed.view(got.shape)


def times(tolerance: float | Tolerance, factor: float) -> float | Tolerance:
    """Return ``factor`` times a tolerance of elements."""
    if not isinstance(tolerance, Tolerance):
        return factor * tolerance
    wider = {"max_atol": factor * tolerance.max_atol, "max_rtol": factor * tolerance.max_rtol}
    return tolerance.model_copy(update=wider)


def _is_clearly_equal(
    left: torch.Tensor, right: torch.Tensor, tolerance: float | Tolerance, unit: float
) -> bool:
    """Check quickly, in single precision, that all elements are equal; False proves nothing."""
    if isinstance(tolerance, Tolerance) or right.dtype not in _SINGLE or not right.numel():
        return False
    factor = tolerance * (1 - _ROUNDING)
    equal = torch.ones((), dtype=torch.bool, device=right.device)
    for start in range(0, right.numel(), _CHUNK):
        a, b = left[start : start + _CHUNK].float(), right[start : start + _CHUNK].float()
        limit = b.abs().mul_(factor).add_(factor * unit)
        # an infinite error is not below an infinite limit, and NaN below none
        equal &= ((a - b).abs_() < limit).all()
    return bool(equal)


@dataclass(frozen=True)
class _Part:
    """One compared part of two tensors: the wrong elements, and absolute differences of finite ones.

    ``odd`` elements are finite on one side alone or differ in their infinity or NaN; ``both`` are finite on
    both sides. None for integers and booleans.
    """

    bad: torch.Tensor
    error: torch.Tensor
    odd: torch.Tensor | None = None
    both: torch.Tensor | None = None


def _compared(
    left: torch.Tensor, right: torch.Tensor, tolerance: float | Tolerance, unit: float
) -> Iterator[tuple[int, _Part]]:
    """Compare part by part; yield the index of each part's first element too."""
    for start in range(0, right.numel(), _CHUNK):
        yield start, _compare(left[start : start + _CHUNK], right[start : start + _CHUNK], tolerance, unit)


def _compare(a: torch.Tensor, b: torch.Tensor, tolerance: float | Tolerance, unit: float) -> _Part:
    wide = torch.complex128 if b.is_complex() else torch.float64
    if not (b.is_floating_point() or b.is_complex()):
        return _Part(a != b, (a.to(wide) - b.to(wide)).abs())
    form, narrow = b.dtype, is_float8(b)
    a, b = a.to(wide), b.to(wide)
    both = torch.isfinite(a) & torch.isfinite(b)
    same = (a == b) | (torch.isnan(a) & torch.isnan(b))
    error = torch.where(both, (a - b).abs(), torch.zeros((), dtype=torch.float64, device=a.device))
    odd = ~both & ~same
    limit = limits(b, tolerance, unit)
    if narrow:
        of = torch.finfo(form)
        limit = torch.maximum(limit, of.eps * torch.clamp(b.abs(), min=of.smallest_normal))
    return _Part(odd | (both & (error > limit)), error, odd, both)


def limits(want: torch.Tensor, tolerance: float | Tolerance, unit: float) -> torch.Tensor:
    """Return the largest permitted error of each element."""
    if not isinstance(tolerance, Tolerance):
        return tolerance * unit + tolerance * want.abs()
    absolute, relative = tolerance.max_atol * unit, tolerance.max_rtol * want.abs()
    limit = absolute + relative if tolerance.added else relative.clamp(min=absolute)
    return limit if tolerance.max_error_cap is None else limit.clamp(max=tolerance.max_error_cap * unit)


def _lets(tolerance: Tolerance, wrong: int, largest: float, total: int, *, sampled: bool) -> bool:
    """Return True if a problem's tolerance permits so many wrong elements, with this largest error."""
    if tolerance.max_error_cap is not None and largest > tolerance.max_error_cap:
        return False
    needed, right = tolerance.required_matched_ratio, (total - wrong) / total
    return right >= needed or (sampled and total * _surprise(right, needed) < _CHANCE)


def _surprise(share: float, expected: float) -> float:
    """Return the relative entropy of two shares.

    By Chernoff's bound a sample of ``n`` has a share this far off with a probability of at most ``exp(-n *
    surprise)``.
    """
    parts = ((share, expected), (1.0 - share, 1.0 - expected))
    return sum(one * math.log(one / other) if other else math.inf for one, other in parts if one)


def _some_wrong(
    left: torch.Tensor, right: torch.Tensor, tolerance: float | Tolerance, unit: float, wrong: int
) -> torch.Tensor:
    """Return flat indices of wrong elements in rising order: all, or a random part if there are many."""
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
