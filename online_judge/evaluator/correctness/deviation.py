"""Measure how far an output deviates from its oracle, in parts that fit into memory."""

import math

import torch

from online_judge.checks.facts.precision import NO_ERROR, SINGLE_ULP, Error
from online_judge.common.modules import widened

_CHUNK = 2**22
_FINITE_CHUNK = 2**23
_LARGE_EXPONENT = 400  # squares of float64 numbers from here on may overflow when summed over an output
_TOTAL = Error(math.inf, math.inf, math.inf, math.inf)


def error(got: torch.Tensor, oracle: torch.Tensor) -> Error:
    """Return the error of ``got`` against ``oracle``, of one shape.

    The oracle is usually float64. An oracle that overflows the dtype of ``got`` agrees with an
    infinity there. Integers and booleans have no error, or an infinite one.
    """
    if not (got.is_floating_point() or got.is_complex()):
        return NO_ERROR if torch.equal(got, oracle.to(got.dtype)) else _TOTAL
    if got.is_complex():
        got, oracle = torch.view_as_real(got.resolve_conj()), torch.view_as_real(oracle.resolve_conj())
    ulp = max(float(torch.finfo(got.dtype).eps), SINGLE_ULP)
    left, right = got.reshape(-1), oracle.reshape(-1)
    if not right.numel():
        return NO_ERROR
    exponent = _exponent(left, right)
    if exponent:
        left, right = left * 2.0**-exponent, right * 2.0**-exponent
    sums = _sums_of_finite(left, right)
    count, odd, first, second, squared, wrong, along, peak, top = (
        sums if all(map(math.isfinite, sums)) else _sums(left, right)
    )
    count = max(count, 1.0)
    magnitude = math.sqrt(squared / count)
    spread = math.sqrt(max(second / count - (first / count) ** 2, 0.0))
    if spread <= 1e-7 * magnitude:
        spread = magnitude or 1.0
    factor = along / squared if squared else 0.0
    return Error(
        rms=math.sqrt(wrong / count) / spread,
        peak=peak / spread,
        noise=math.sqrt(max(wrong - factor * along, 0.0) / count) / spread,
        drift=abs(factor),
        size=magnitude / spread,
        top=top / spread,
        ulp=ulp,
        odd=int(odd),
        spread=math.ldexp(spread, exponent),
    )


def _exponent(*sides: torch.Tensor) -> int:
    """Return the power of two of the largest finite element if squares may overflow, else 0."""
    if sides[0].dtype != torch.float64:
        return 0
    finite = [torch.where(torch.isfinite(side), side.abs(), 0.0) for side in sides]
    exponent = math.frexp(max(float(side.max()) for side in finite))[1]
    return exponent if exponent > _LARGE_EXPONENT else 0


def _sums_of_finite(left: torch.Tensor, right: torch.Tensor) -> list[float]:
    """Return the same as :func:`_sums` if all elements are finite; else one of the sums is not finite.

    It needs a third of the memory traffic.
    """
    sums = torch.zeros(5, dtype=torch.float64, device=right.device)
    tops = torch.zeros(2, dtype=torch.float64, device=right.device)
    centre: torch.Tensor | None = None
    for start in range(0, right.numel(), _FINITE_CHUNK):
        wide = widened(right[start : start + _FINITE_CHUNK]).to(torch.float64)
        off = widened(left[start : start + _FINITE_CHUNK]).to(torch.float64) - wide
        if centre is None:
            centre = wide.mean()
        about = wide - centre
        sums += torch.stack([about.sum(), about.dot(about), wide.dot(wide), off.dot(off), off.dot(wide)])
        tops = torch.maximum(tops, torch.stack([off.abs_().max(), wide.abs().max()]))
    return [float(right.numel()), 0.0, *sums.tolist(), *tops.tolist()]


def _sums(left: torch.Tensor, right: torch.Tensor) -> list[float]:
    """Return counts of finite and of odd elements, six sums over the finite ones and their largest size."""
    sums = torch.zeros(8, dtype=torch.float64, device=left.device)
    centre: torch.Tensor | None = None
    tops: list[torch.Tensor] = []
    for start in range(0, right.numel(), _CHUNK):
        a, b = left[start : start + _CHUNK], right[start : start + _CHUNK]
        narrow, a, b = widened(b.to(a.dtype)), widened(a), widened(b)
        finite = torch.isfinite(a) & torch.isfinite(b)
        agree = finite | (a == narrow) | (torch.isnan(a) & torch.isnan(narrow))
        wide = torch.where(finite, b.to(torch.float64), 0.0)
        off = torch.where(finite, a.to(torch.float64), 0.0) - wide
        if centre is None:  # sums relative to one element, so that a large mean does not hide the spread
            centre = wide.sum() / finite.sum().clamp(min=1)
        about = torch.where(finite, wide - centre, 0.0)
        sums[0] += finite.sum()
        sums[1] += (~agree).sum()
        sums[2] += about.sum()
        sums[3] += about.square().sum()
        sums[4] += wide.square().sum()
        sums[5] += off.square().sum()
        sums[6] += (off * wide).sum()
        sums[7] = torch.maximum(sums[7], off.abs().max())
        tops.append(wide.abs().max())
    return [*sums.tolist(), float(torch.stack(tops).max())]
