"""Other inputs for a problem: scaled, shifted, full of ties; no kernel may live off one distribution."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import torch

from online_judge.common import trees
from online_judge.evaluator.correctness import comparison
from online_judge.evaluator.reference import Reference

Name = Literal["scaled", "shifted", "tied"]

# share of elements at an output's largest or smallest value from which on it is saturated
_SATURATED = 0.9
# share of exact zeros from which on they are structure (a triangle, a mask)
_STRUCTURAL = 0.02
_SAMPLE = 2**22


@dataclass(frozen=True)
class _Leaf:
    """What an input tensor looks like.

    Attributes:
        low: smallest element.
        high: largest.
        spread: standard deviation.
        sparse: whether zeros are part of its structure.
    """

    low: float
    high: float
    spread: float
    sparse: bool

    @property
    def in_unit(self) -> bool:
        """Whether all elements are within [0, 1]."""
        return self.low >= 0 and self.high <= 1


@dataclass(frozen=True)
class Variant:
    """One way to change inputs."""

    name: Name
    _change: Callable[[Any, _Leaf, float], Any]

    def apply(self, inputs: list[Any], generator: Any) -> list[Any]:
        """New inputs; ``generator``, a :class:`torch.Generator` of the CPU, decides how far they move.

        Integers, booleans and floating tensors of whole numbers (labels, masks, empty states) stay, and so
        do NaN and infinities. What was not negative, or within [0, 1], remains so; zeros that are part of a
        tensor's structure remain zero.
        """
        draw = float(torch.rand((), generator=generator))

        def change(leaf: Any) -> Any:
            look = _look(leaf)
            if look is None:
                return leaf.clone()
            wide = leaf.to(torch.float64) if leaf.dtype == torch.float64 else leaf.to(torch.float32)
            made = self._change(wide, look, draw)
            if look.sparse:
                made = torch.where(wide == 0, wide, made)
            return torch.where(torch.isfinite(wide), made, wide).to(leaf.dtype)

        return [trees.map_leaves(value, change) for value in inputs]


def shrunk(inputs: list[Any], factor: float) -> list[Any]:
    """Return ``inputs`` times ``factor``, at most 1; tensors whose domain may end above zero stay."""
    if factor == 1.0:
        return inputs

    def change(value: Any, look: _Leaf, draw: float) -> Any:
        return value * factor if look.in_unit or look.low <= 0 else value

    return Variant("scaled", change).apply(inputs, torch.Generator().manual_seed(0))


def usable(outputs: Sequence[Any], original: Sequence[Any]) -> bool:
    """Whether the reference's outputs on a variant still tell something.

    Args:
        outputs: leaves that the reference makes of the variant.
        original: leaves that it makes of the unchanged inputs.

    Returns:
        False where an output is not finite where the original is, or is saturated: nearly all of it at
        its largest or smallest value, and more of it than in the original.
    """
    for made, first in zip(outputs, original, strict=True):
        if made.shape != first.shape:
            return False
        if not made.is_floating_point() or not made.numel():
            continue
        if bool((~torch.isfinite(made) & torch.isfinite(first)).any()):
            return False
        if made.numel() > 1 and _at_the_ends(made) > max(_SATURATED, _at_the_ends(first)):
            return False
    return True


def units(outputs: Sequence[Any], original: Sequence[Any]) -> tuple[float, ...]:
    """How much larger the outputs of a variant are, a leaf; at least 1.

    An absolute tolerance must grow by it: ten times the inputs have ten times the rounding errors.
    """
    return tuple(
        max(_size(made) / (_size(first) or 1.0), 1.0) for made, first in zip(outputs, original, strict=True)
    )


def steady(
    reference: Reference, inputs: list[Any], name: str | int, outputs: Sequence[Any], tolerance: float
) -> bool:
    """Whether the reference's outputs stay within a tolerance when its inputs are rounded as TF32 rounds.

    Where they do not, a wrong output may be lower precision, magnified by a steep function, and says nothing
    about a candidate.

    Args:
        reference: asked once more.
        inputs: of a variant; they stay.
        name: of the call, which decides its seed.
        outputs: leaves that the reference makes of ``inputs``.
        tolerance: relative and absolute; half of it is left to rounding within the reference.

    Raises:
        ReferenceFailed: the reference raises.
    """
    rounded = [trees.map_leaves(value, _rounded) for value in inputs]
    found = reference.outputs(rounded, name).leaves
    return all(
        comparison.equals(one, other, 0.5 * tolerance) for one, other in zip(found, outputs, strict=True)
    )


def _rounded(leaf: Any) -> Any:
    """The nearest numbers with 10 bits of mantissa, ties upwards."""
    if leaf.dtype != torch.float32:
        return leaf.clone()
    bits = leaf.contiguous().view(torch.int32)
    nearest = ((bits + (1 << 12)) & -(1 << 13)).view(torch.float32)
    return torch.where(torch.isfinite(leaf), nearest, leaf)


def _scaled(value: Any, look: _Leaf, draw: float) -> Any:
    grows = draw < 0.5 and not look.in_unit
    return value * (10.0 if grows else 0.1)


def _shifted(value: Any, look: _Leaf, draw: float) -> Any:
    far = 0.75 + 0.5 * draw
    if look.in_unit:
        return value + (1 - value) * min(0.5 * far, 0.6)
    return value + far * look.spread * (1.0 if look.low >= 0 or draw < 0.5 else -1.0)


def _tied(value: Any, look: _Leaf, draw: float) -> Any:
    step = look.spread * (0.4 + 0.3 * draw)
    away = look.low > 0.5 * step  # zero is not in its domain
    start = look.low if away else 0.0
    return (start + ((value - start) / step).round() * step).clamp(look.low if away else None, look.high)


VARIANTS: tuple[Variant, ...] = (
    Variant("scaled", _scaled),
    Variant("shifted", _shifted),
    Variant("tied", _tied),
)


def _look(leaf: Any) -> _Leaf | None:
    """None for what is to stay as it is."""
    if not leaf.is_floating_point() or not leaf.numel():
        return None
    finite = leaf[torch.isfinite(leaf)].to(torch.float64) if leaf.numel() <= _SAMPLE else _sample(leaf)
    if not finite.numel() or bool((finite == finite.round()).all()):
        return None
    low, high = (float(end) for end in finite.aminmax())
    spread = float(finite.std(unbiased=False)) or abs(high)
    sparse = float((finite == 0).double().mean()) > _STRUCTURAL
    return _Leaf(low, high, spread, sparse)


def _sample(leaf: Any) -> Any:
    """Every k-th element and both ends, which decide the domain."""
    flat = leaf.reshape(-1)
    some = torch.cat([flat[:: -(-flat.numel() // _SAMPLE)], torch.stack(list(flat.aminmax()))])
    return some[torch.isfinite(some)].to(torch.float64)


def _at_the_ends(leaf: Any) -> float:
    flat = leaf.reshape(-1)
    low, high = flat.aminmax()
    return float(max(int((flat == low).sum()), int((flat == high).sum())) / flat.numel())


def _size(leaf: Any) -> float:
    if not leaf.is_floating_point():
        return 0.0
    some = torch.where(torch.isfinite(leaf), leaf, 0.0)
    count = max(some.numel(), 1)
    return float(torch.linalg.vector_norm(some, dtype=torch.float64)) / float(count**0.5)
