"""Values of a traced ``forward``: host expressions, and values that a kernel can compute."""

from dataclasses import dataclass
from typing import Literal

from adaexplore.core.text.arithmetic import Number

ScalarType = Literal["f", "i", "b"]  # floating, integer, boolean
HostKind = Literal["tensor", "scalar", "other"]


@dataclass(frozen=True, eq=False)
class Value:
    """The value of an expression of ``forward``; compared by identity."""


@dataclass(frozen=True, eq=False)
class Constant(Value):
    """A number known while translating."""

    number: Number


@dataclass(frozen=True, eq=False)
class Host(Value):
    """A Python expression that the generated ``forward`` evaluates unchanged."""

    text: str  # the expression, with ``{0}``, ``{1}``, ... for ``operands``
    operands: tuple[Value, ...] = ()
    kind: HostKind = "other"  # a tensor, a Python number, or anything else (shape, tuple, module ...)
    scalar_type: ScalarType = "f"  # of the elements, if it is a tensor
    inline: bool = True  # cheap and pure, so it may be written where it is used


@dataclass(frozen=True, eq=False)
class Pointwise(Value):
    """An element-wise operation named in ``expressions.yaml``."""

    name: str
    operands: tuple[Value, ...]
    scalar_type: ScalarType


@dataclass(frozen=True)
class Axes:
    """The axes of a reduction."""

    text: str  # a host expression for a dimension or a tuple of them; for groups, their number
    grouped: bool = False  # dimensions from 1 on in equal groups of channels, as in group normalisation


@dataclass(frozen=True, eq=False)
class Reduction(Value):
    """A reduction (sum, mean, max or min) that keeps its dimensions at size one."""

    name: str
    operand: Value
    axes: Axes


@dataclass(frozen=True, eq=False)
class Drop(Value):
    """Removes the reduced dimensions of a reduction's result, without moving data."""

    operand: Value
    axes: Axes


@dataclass(frozen=True, eq=False)
class Channels(Value):
    """A vector with one entry per channel (dimension 1) of the tensor that it is combined with."""

    vector: Value


@dataclass(frozen=True, eq=False)
class MatMul(Value):
    """``left @ right`` as ``torch.matmul`` defines it; ``host`` is the library's own call."""

    left: Value
    right: Value
    bias: Value | None
    host: Host


@dataclass(frozen=True, eq=False)
class Items(Value):
    """A tuple or list with known parts."""

    values: tuple[Value, ...]
    brackets: str = "()"


def operands_of(value: Value) -> tuple[Value, ...]:
    """Return the values from which ``value`` is computed."""
    match value:
        case Host(operands=operands) | Pointwise(operands=operands):
            return operands
        case Items(values=values):
            return values
        case Reduction(operand=operand) | Drop(operand=operand):
            return (operand,)
        case Channels(vector=vector):
            return (vector,)
        case MatMul(left=left, right=right, bias=bias):
            return (left, right) if bias is None else (left, right, bias)
    return ()


def scalar_type_of(value: Value) -> ScalarType:
    return value.scalar_type if isinstance(value, Host | Pointwise) else "f"


def is_tensor(value: Value) -> bool:
    """Return True if a kernel can read ``value`` or compute it."""
    if isinstance(value, Host):
        return value.kind == "tensor"
    return isinstance(value, Pointwise | Reduction | Drop | MatMul | Channels)


def is_scalar(value: Value) -> bool:
    """Return True if ``value`` is a Python number."""
    return isinstance(value, Constant) or (isinstance(value, Host) and value.kind == "scalar")
