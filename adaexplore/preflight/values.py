"""What the compiler would know of a value inside a kernel: kind, shape, element type; never contents."""

from __future__ import annotations

import ast
import math
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.preflight.constants import UNKNOWN

MAX_ELEMENTS = 1 << 20
_SMALLEST = 2.0**-126
_LARGEST = (2 - 2.0**-23) * 2.0**127
_FLOATS = {"fp16": 16, "bf16": 16, "fp32": 32, "fp64": 64}
_INTS = {"int1": 1, "int8": 8, "int16": 16, "int32": 32, "int64": 64}
_UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
POINTER = "pointer"
INTEGER = "integer"
"""An integer of unknown width."""
TYPE_NAMES = {
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    **{name: name for name in (*_INTS, *_UNSIGNED)},
    **{name: name for name in ("float8e4b15", "float8e4nv", "float8e4b8", "float8e5", "float8e5b16")},
}
"""Element types by their names in ``triton.language``."""


@dataclass(frozen=True)
class Anything:
    """Nothing is known."""


ANY = Anything()


@dataclass(frozen=True)
class Const:
    """A compile-time value; ``value`` may be UNKNOWN, or a Block wrongly called constant."""

    value: object = UNKNOWN

    @property
    def known(self) -> bool:
        """Whether the value is known."""
        return self.value is not UNKNOWN


@dataclass(frozen=True)
class Block:
    """A run-time value.

    Attributes:
        shape: () for a scalar; None where unknown, as may be each of its lengths.
        dtype: short name of the element type, ``pointer``, ``integer``, or None.
        given: a kernel's argument of which not even is sure that it is a run-time value.
    """

    shape: tuple[int | None, ...] | None = None
    dtype: str | None = None
    given: bool = False

    def __str__(self) -> str:
        """For messages, such as ``fp32[64, ?]``."""
        kind = self.dtype or "value"
        if self.shape is None:
            return f"a block of {kind}"
        return f"{kind}{shape_text(self.shape)}" if self.shape else f"a scalar {kind}"


@dataclass(frozen=True)
class DType:
    """An element type; ``name`` as in ``triton.language``."""

    name: str


@dataclass(frozen=True)
class Group:
    """A tuple or list."""

    items: tuple[Value, ...]


@dataclass(frozen=True)
class Named:
    """Something imported, by its dotted path; ``builtins.`` for Python's own."""

    path: str


@dataclass(frozen=True)
class Method:
    """A tensor's method."""

    owner: Block
    name: str


@dataclass(frozen=True)
class Jitted:
    """One of the candidate's own jitted functions."""

    name: str


Shape = tuple[int | None, ...] | None
"""Lengths of a block; None where its rank is unknown, as may be each length."""
Value = Anything | Const | Block | DType | Group | Named | Method | Jitted


def shape_text(shape: Sequence[int | None]) -> str:
    """For messages."""
    return "[" + ", ".join("?" if length is None else str(length) for length in shape) + "]"


def of_number(value: object) -> Block | None:
    """The scalar that a number becomes when it is assigned."""
    match value:
        case bool():
            return Block((), "int1")
        case int() if -(2**31) <= value < 2**31:
            return Block((), "int32")
        case int():
            return Block((), INTEGER)
        case float() if (
            value == 0 or value != value or _SMALLEST <= abs(value) <= _LARGEST or math.isinf(value)
        ):
            return Block((), "fp32")
        case float():
            return Block((), "fp64")
        case _:
            return None


def is_float(dtype: str | None) -> bool:
    """Whether an element type is a floating one."""
    return dtype in _FLOATS or (dtype or "").startswith("float8")


def is_int(dtype: str | None) -> bool:
    """Whether an element type is an integer."""
    return dtype in _INTS or dtype in _UNSIGNED or dtype == INTEGER


def is_plain(dtype: str | None) -> bool:
    """Whether an element type is known and no pointer."""
    return is_float(dtype) or is_int(dtype)


def promoted(
    left: Block, right: Block, operator: ast.operator | None, numbers: tuple[bool, bool]
) -> str | None:
    """Element type of an arithmetic operation; ``numbers`` tells which side is a plain number.

    After Triton's rules for promotion (``TritonSemantic.computation_type_impl``).
    """
    one, other = left.dtype, right.dtype
    if POINTER in (one, other):
        return POINTER
    if not (is_plain(one) and is_plain(other)):
        return None
    divides = isinstance(operator, ast.Div | ast.Mod)
    if isinstance(operator, ast.Div) and is_int(one) and is_int(other):
        return "fp32"
    if numbers[0] != numbers[1]:
        number, block = (one, other) if numbers[0] else (other, one)
        if is_float(block) or not is_float(number):
            return "fp32" if divides and block in ("fp16", "bf16") else block
    for wide in ("fp64", "fp32"):
        if wide in (one, other):
            return wide
    if "fp16" in (one, other):
        return "fp32" if divides else "fp16"
    if "bf16" in (one, other):
        return "bf16" if one == other and not divides else "fp32"
    if one == other:
        return one
    if one in _INTS and other in _INTS:
        return one if _INTS[str(one)] > _INTS[str(other)] else other
    return INTEGER if is_int(one) and is_int(other) else None


def broadcast(left: Block, right: Block) -> tuple[int | None, ...] | None:
    """Shape of an element-wise operation; None where unknown.

    Raises:
        ValueError: the shapes do not fit.
    """
    if left.shape is None or right.shape is None:
        return None
    rank = max(len(left.shape), len(right.shape))
    pairs = zip(
        (1,) * (rank - len(left.shape)) + left.shape,
        (1,) * (rank - len(right.shape)) + right.shape,
        strict=True,
    )
    return tuple(_length(one, other) for one, other in pairs)


def _length(one: int | None, other: int | None) -> int | None:
    if one == 1:
        return other
    if other == 1:
        return one
    if one is None or other is None:
        return one if other is None else other
    if one != other:
        raise ValueError
    return one


def joined(one: Value, other: Value) -> Value:
    """What is known of a value that is one or the other."""
    if one == other:
        return one
    if isinstance(one, Block) and isinstance(other, Block):
        shape = None
        if one.shape is not None and other.shape is not None and len(one.shape) == len(other.shape):
            shape = tuple(a if a == b else None for a, b in zip(one.shape, other.shape, strict=True))
        dtype = one.dtype if one.dtype == other.dtype else None
        return Block(shape, dtype, one.given or other.given)
    if isinstance(one, Const) and isinstance(other, Const):
        return Const()
    return ANY


def clash(one: Block, other: Block) -> bool:
    """Whether two run-time values surely differ in type."""
    if one.given or other.given:
        return False
    if (
        None not in (one.dtype, other.dtype)
        and one.dtype != other.dtype
        and INTEGER not in (one.dtype, other.dtype)
    ):
        return True
    if INTEGER in (one.dtype, other.dtype) and (is_float(one.dtype) or is_float(other.dtype)):
        return True
    if one.shape is None or other.shape is None:
        return False
    if len(one.shape) != len(other.shape):
        return True
    return any(None not in pair and pair[0] != pair[1] for pair in zip(one.shape, other.shape, strict=True))
