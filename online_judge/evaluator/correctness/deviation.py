"""How far an output deviates from its oracle, measured in parts that fit into memory."""

from __future__ import annotations

import math

import torch

from online_judge.protocol.precision import NO_ERROR, SINGLE_ULP, Error

_CHUNK = 2**22
_TOTAL = Error(math.inf, math.inf, math.inf, math.inf)


def error(got: torch.Tensor, oracle: torch.Tensor) -> Error:
    """Return the error of ``got`` against ``oracle``, of one shape on one device, in parts of 2**22 elements.

    The oracle is usually float64. An oracle that overflows the dtype of ``got`` agrees with an
    infinity there. Integers and booleans have no error, or an infinite one.
    """
    if not (got.is_floating_point() or got.is_complex()):
        return NO_ERROR if torch.equal(got, oracle.to(got.dtype)) else _TOTAL
    if got.is_complex():
        got, oracle = torch.view_as_real(got.resolve_conj()), torch.view_as_real(oracle.resolve_conj())
    left, right = got.reshape(-1), oracle.reshape(-1)
    sums = torch.zeros(8, dtype=torch.float64, device=got.device)
    centre: torch.Tensor | None = None
    tops: list[torch.Tensor] = []
    for start in range(0, right.numel(), _CHUNK):
        a, b = left[start : start + _CHUNK], right[start : start + _CHUNK]
        narrow = b.to(a.dtype)
        finite = torch.isfinite(a) & torch.isfinite(b)
        agree = finite | (a == narrow) | (torch.isnan(a) & torch.isnan(narrow))
        wide = torch.where(finite, b.to(torch.float64), 0.0)
        off = torch.where(finite, a.to(torch.float64), 0.0) - wide
        if centre is None:  # sums about some element: a large mean must not swallow the spread
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
    if not right.numel():
        return NO_ERROR
    count, odd, first, second, squared, wrong, along, peak = sums.tolist()
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
        top=float(torch.stack(tops).max()) / spread,
        ulp=max(float(torch.finfo(got.dtype).eps), SINGLE_ULP),
        odd=int(odd),
        spread=spread,
    )
