"""Describe where and how an output is wrong: hints for repairing the kernel."""

import math

import torch

_ENOUGH = 0.95
_ALIKE = 1e-2
_LEAST = 3


def describe(got: torch.Tensor, want: torch.Tensor, wrong: torch.Tensor, tolerance: float) -> str:
    """Return a short phrase; empty if nothing stands out.

    ``wrong`` are flat indices of wrong elements, or of a random part of them, in rising order.
    """
    left, right = got.reshape(-1), want.reshape(-1)
    a, b = left[wrong].to(torch.complex128 if got.is_complex() else torch.float64), right[wrong]
    found = [_of_values(a, b.to(a.dtype), tolerance)]
    if not found[0] and _is_transposed(a, right, wrong, tuple(want.shape), tolerance):
        found[0] = "the last two dimensions look transposed"
    found.append(_of_places(wrong, tuple(want.shape)))
    return "; ".join(part for part in found if part)


def _of_values(a: torch.Tensor, b: torch.Tensor, tolerance: float) -> str:
    if a.is_complex():
        return ""
    if _share(torch.isnan(a) & ~torch.isnan(b)) > _ENOUGH:
        return "the wrong elements are NaN: not written, or computed from what was not written"
    if _share(a == 0) > _ENOUGH:
        return "the wrong elements are zero"
    usable = torch.isfinite(a) & torch.isfinite(b) & (b.abs() > tolerance)
    if int(usable.sum()) < max(_LEAST, 0.5 * a.numel()) or _is_flat(b[usable]):
        return ""
    a, b = a[usable], b[usable]
    if _is_flat(a):
        return f"the wrong elements are all {float(a.median()):.4g}"
    factor = float((a / b).median())
    scaled = factor * b
    if abs(factor - 1) > _ALIKE and factor and _share((a - scaled).abs() <= _ALIKE * scaled.abs()) > _ENOUGH:
        return f"the wrong elements are {factor:.4g} times what they should be"
    offset = float((a - b).median())
    if offset and _share((a - b - offset).abs() <= _ALIKE * abs(offset)) > _ENOUGH:
        return f"the wrong elements are off by {offset:.4g}"
    return ""


def _is_transposed(
    a: torch.Tensor, right: torch.Tensor, wrong: torch.Tensor, shape: tuple[int, ...], tolerance: float
) -> bool:
    """Say whether the matrices of the last two dimensions were stored column by column."""
    if len(shape) < 2 or min(shape[-2:]) < 2 or wrong.numel() < _LEAST:
        return False
    rows, columns = shape[-2:]
    matrix, place = wrong // (rows * columns), wrong % (rows * columns)
    b = right[matrix * rows * columns + (place % rows) * columns + place // rows].to(a.dtype)
    return not _is_flat(b) and _share((a - b).abs() <= tolerance * b.abs() + tolerance * _ALIKE) > _ENOUGH


def _of_places(wrong: torch.Tensor, shape: tuple[int, ...]) -> str:
    """Find the first dimension along which wrong elements cluster: one tile, one stride, or the border."""
    total = math.prod(shape)
    inner, nearest = total, torch.full_like(wrong, total)
    for dim, size in enumerate(shape):
        inner //= size
        along = (wrong // inner) % size
        if size < 2:
            continue
        found = _along(torch.unique(along), size)
        if found:
            return f"only {found} of dimension {dim} (size {size})"
        if dim >= len(shape) - 2:
            edge = torch.minimum(along, size - 1 - along)
            nearest = torch.where(edge < size // 8, torch.minimum(nearest, edge), nearest)
    width = int(nearest.max()) + 1
    return f"only within {width} of the border of the last dimensions" if width <= total else ""


def _along(seen: torch.Tensor, size: int) -> str:
    """Describe the pattern of these indices, which are distinct and in rising order."""
    first, last, count = int(seen[0]), int(seen[-1]), int(seen.numel())
    run = last - first + 1
    if count == size:
        return ""
    if count >= 0.9 * run and run <= size // 2:
        if run == 1:
            return f"index {first}"
        where = ", the last tile or border," if last == size - 1 else ""
        return f"indices {first} to {last}{where}"
    if count >= _LEAST:
        step = math.gcd(*(seen - first).tolist())
        if step > 1 and count >= 0.9 * (run // step):
            return f"every {step}th index, from {first} on,"
    return ""


def _is_flat(values: torch.Tensor) -> bool:
    return not values.numel() or bool((values == values[0]).all())


def _share(mask: torch.Tensor) -> float:
    return float(mask.double().mean()) if mask.numel() else 0.0
