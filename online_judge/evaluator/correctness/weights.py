"""Other weights of the same kind, to find results that were computed from the first ones."""

from __future__ import annotations

from typing import Any

import torch

_RUNNING = ("running_mean", "running_var", "num_batches_tracked")
# how far elements move, relative to themselves, besides changing places
_JITTER = 0.1
# of weights of so few elements each moves by this factor
_FEW, _FAR = 16, 1.6
# elements of a weight that is zero everywhere, such as a new bias
_FROM_ZERO = 0.05


def rearranged(
    weights: dict[str, Any], parameters: dict[str, Any], device: Any, seed: int, scale: float = 1.0
) -> dict[str, Any]:
    """``weights`` with the elements of floating ones moved and changed by up to a tenth or so.

    Signs move with their elements, so that positive weights stay positive. Running statistics and
    buffers that hold whole numbers alone (masks, indices) or infinities stay.

    Args:
        weights: state by name.
        parameters: those of them that are parameters; the others are buffers.
        device: where the new ones are made.
        seed: of the draw.
        scale: factor of all that change.
    """
    generator = torch.Generator(device=device).manual_seed(seed)
    fresh: dict[str, Any] = {}
    for name, value in weights.items():
        old = value.to(device)
        if _stays(name, old, name in parameters):
            fresh[name] = old.clone()
            continue
        shift = int(torch.randint(0, max(old.numel(), 1), (), generator=generator, device=device))
        noise = torch.rand(old.shape, generator=generator, device=device, dtype=torch.float32).mul_(2).sub_(1)
        if bool((old == 0).all()):
            fresh[name] = (scale * _FROM_ZERO * noise).to(old.dtype)
            continue
        draw = float(torch.rand((), generator=generator, device=device))
        factor = 1 + _JITTER * (draw - 0.5)
        if old.numel() <= _FEW:  # moving elements about changes little
            factor = _FAR if draw < 0.5 else 1 / _FAR
        moved = old.reshape(-1).roll(shift).reshape(old.shape)
        fresh[name] = (moved * noise.mul_(_JITTER).add_(1).mul_(scale * factor)).to(old.dtype)
    return fresh


def _stays(name: str, value: Any, is_parameter: bool) -> bool:
    if not value.is_floating_point() or name.rpartition(".")[2] in _RUNNING or not value.numel():
        return True
    if not bool(torch.isfinite(value).all()):
        return True
    return not is_parameter and bool((value == value.round()).all())
