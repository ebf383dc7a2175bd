"""Make other inputs and weights for a problem, to find kernels that fit one distribution or result only."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

import torch

from online_judge.common import trees
from online_judge.common.modules import widened

Name = Literal["scaled", "shifted", "tied"]

# an output is saturated if this share of its elements is at its largest or smallest value
_SATURATED = 0.9
# from this share on, exact zeros are structure (a triangle, a mask)
_STRUCTURAL = 0.02
_SAMPLE = 2**22
_RUNNING = ("running_mean", "running_var")
# how far weights move, relative to themselves, besides changing places
_JITTER = 0.1
# if a weight has this few elements, each changes by this factor
_FEW, _FAR = 16, 1.6
# the largest element that takes the place of zeros in a weight that has no others; in a vector, such as a new
# bias, all are at least half as large, far above the usual tolerance
_FROM_ZERO, _VECTOR_FROM_ZERO = 0.05, 0.5


@dataclass(frozen=True)
class _Look:
    """Smallest and largest element of an input, standard deviation, and whether zeros are its structure."""

    low: float
    high: float
    spread: float
    sparse: bool

    @property
    def in_unit(self) -> bool:
        return self.low >= 0 and self.high <= 1


@dataclass(frozen=True)
class Variant:
    name: Name
    _change: Callable[[torch.Tensor, _Look, float], torch.Tensor]

    def apply(self, inputs: list[object], generator: torch.Generator) -> list[object]:
        """Return new inputs; ``generator``, of the CPU, decides how far they move.

        Integers, booleans and floating tensors of whole numbers (labels, masks, empty states) stay, and so do
        NaN and infinities. Tensors without negative elements, or within [0, 1], keep that domain; zeros that
        are part of a tensor's structure stay zero.
        """
        draw = float(torch.rand((), generator=generator))

        def change(leaf: torch.Tensor) -> torch.Tensor:
            if leaf.is_complex():
                return torch.view_as_complex(change(torch.view_as_real(leaf.resolve_conj())))
            look = _look(widened(leaf))
            if look is None:
                return leaf.clone()
            wide = leaf.to(torch.float64) if leaf.dtype == torch.float64 else leaf.to(torch.float32)
            made = self._change(wide, look, draw)
            if look.sparse:
                made = torch.where(wide == 0, wide, made)
            return torch.where(torch.isfinite(wide), made, wide).to(leaf.dtype)

        return [trees.map_leaves(value, change) for value in inputs]


def _enlarged(value: torch.Tensor, look: _Look, draw: float) -> torch.Tensor:
    return value * (0.5 if look.in_unit else 10.0)


def _diminished(value: torch.Tensor, look: _Look, draw: float) -> torch.Tensor:
    return value * 0.1


def _shifted(value: torch.Tensor, look: _Look, draw: float) -> torch.Tensor:
    far = 0.75 + 0.5 * draw
    if look.in_unit:
        return value + (1 - value) * min(0.5 * far, 0.6)
    return value + far * look.spread * (1.0 if look.low >= 0 or draw < 0.5 else -1.0)


def _tied(value: torch.Tensor, look: _Look, draw: float) -> torch.Tensor:
    step = look.spread * (0.4 + 0.3 * draw)
    away = look.low > 0.5 * step  # zero is not in its domain
    start = look.low if away else 0.0
    return (start + ((value - start) / step).round() * step).clamp(look.low if away else None, look.high)


VARIANTS = (
    Variant("scaled", _enlarged),
    Variant("scaled", _diminished),
    Variant("shifted", _shifted),
    Variant("tied", _tied),
)


def shrunk(inputs: list[object], factor: float) -> list[object]:
    """Return ``inputs`` times ``factor``, at most 1; tensors whose domain may end above zero stay."""
    if factor == 1.0:
        return inputs

    def change(value: torch.Tensor, look: _Look, draw: float) -> torch.Tensor:
        return value * factor if look.in_unit or look.low <= 0 else value

    return Variant("scaled", change).apply(inputs, torch.Generator().manual_seed(0))


def usable(outputs: Sequence[torch.Tensor], original: Sequence[torch.Tensor]) -> bool:
    """Return True if the reference's outputs on a variant still mean something.

    They do not if an element is not finite where the original is, or if an output is saturated: nearly all of
    it, and more than in the original, is at its largest or smallest value.
    """
    for made, first in zip(map(widened, outputs), map(widened, original), strict=True):
        if made.shape != first.shape:
            return False
        if not made.is_floating_point() or not made.numel():
            continue
        if bool((~torch.isfinite(made) & torch.isfinite(first)).any()):
            return False
        if made.numel() > 1 and _at_the_ends(made) > max(_SATURATED, _at_the_ends(first)):
            return False
    return True


def units(outputs: Sequence[torch.Tensor], original: Sequence[torch.Tensor]) -> tuple[float, ...]:
    """Return how much larger each output of a variant is; at least 1.

    The absolute tolerance grows with it: inputs ten times as large have ten times the rounding errors.
    """
    return tuple(
        max(size(made) / (size(first) or 1.0), 1.0) for made, first in zip(outputs, original, strict=True)
    )


def rounded(leaf: torch.Tensor) -> torch.Tensor:
    """Round float32 to 10 bits of mantissa as TF32 does, ties upwards; copy other tensors."""
    if leaf.dtype != torch.float32:
        return leaf.clone()
    bits = leaf.contiguous().view(torch.int32)
    nearest = ((bits + (1 << 12)) & -(1 << 13)).view(torch.float32)
    return torch.where(torch.isfinite(leaf), nearest, leaf)


def _look(leaf: torch.Tensor) -> _Look | None:
    """Describe an input; None if it must stay as it is."""
    if not leaf.is_floating_point() or not leaf.numel():
        return None
    flat = leaf.reshape(-1)
    if flat.numel() > _SAMPLE:  # every k-th element, and the extremes, which decide the domain
        flat = torch.cat([flat[:: -(-flat.numel() // _SAMPLE)], torch.stack(list(flat.aminmax()))])
    finite = flat[torch.isfinite(flat)].to(torch.float64)
    if not finite.numel() or bool((finite == finite.round()).all()):
        return None
    low, high = (float(end) for end in finite.aminmax())
    spread = float(finite.std(unbiased=False)) or abs(high)
    return _Look(low, high, spread, float((finite == 0).double().mean()) > _STRUCTURAL)


def _at_the_ends(leaf: torch.Tensor) -> float:
    flat = leaf.reshape(-1)
    low, high = flat.aminmax()
    return float(max(int((flat == low).sum()), int((flat == high).sum())) / flat.numel())


def size(leaf: torch.Tensor) -> float:
    """Return the root mean square of the finite elements; 0 for whole numbers."""
    if not leaf.is_floating_point():
        return 0.0
    leaf = widened(leaf)
    some = torch.where(torch.isfinite(leaf), leaf, 0.0)
    count = max(some.numel(), 1)
    return float(torch.linalg.vector_norm(some, dtype=torch.float64)) / float(count**0.5)


def other_weights(
    weights: dict[str, torch.Tensor], parameters: set[str], device: str, seed: int, scale: float = 1.0
) -> dict[str, torch.Tensor]:
    """Return ``weights`` on ``device``, floating ones with elements permuted and changed by about a tenth.

    Signs move with their elements, so that positive weights stay positive. Buffers (all but ``parameters``
    and running statistics) that hold infinities or whole numbers alone (masks, indices) stay. All that
    changes is multiplied by ``scale``.
    """
    generator = torch.Generator(device=device).manual_seed(seed)
    fresh: dict[str, torch.Tensor] = {}
    for name, value in weights.items():
        old = widened(value.to(device))
        if _stays(old, is_weight=name in parameters or name.rpartition(".")[2] in _RUNNING):
            fresh[name] = old.clone().to(value.dtype)
            continue
        shift = int(torch.randint(0, max(old.numel(), 1), (), generator=generator, device=device))
        noise = torch.rand(old.shape, generator=generator, device=device, dtype=torch.float32).mul_(2).sub_(1)
        if bool((old == 0).all()):
            if old.numel() == max(old.shape, default=1):
                noise = torch.copysign(noise.abs().add_(1), noise).mul_(_VECTOR_FROM_ZERO / 2)
            else:
                noise.mul_(_FROM_ZERO)
            fresh[name] = noise.mul_(scale).to(value.dtype)
            continue
        draw = float(torch.rand((), generator=generator, device=device))
        factor = 1 + _JITTER * (draw - 0.5)
        if old.numel() <= _FEW:  # a permutation changes little
            factor = _FAR if draw < 0.5 else 1 / _FAR
        moved = old.reshape(-1).roll(shift).reshape(old.shape)
        fresh[name] = (moved * noise.mul_(_JITTER).add_(1).mul_(scale * factor)).to(value.dtype)
    return fresh


def _stays(value: torch.Tensor, *, is_weight: bool) -> bool:
    if not value.is_floating_point() or not value.numel():
        return True
    if not bool(torch.isfinite(value).all()):
        return True
    return not is_weight and bool((value == value.round()).all())
