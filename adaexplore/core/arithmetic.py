"""Operators on numbers that stand in a program, worked out without running it."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping
from typing import Any

Number = bool | int | float

_OPERATIONS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_COMPARISONS: Mapping[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
}
_LARGEST_BASE = 2**64
_LARGEST_EXPONENT = 64
_LONGEST_RESULT = 4096  # bits


def operate(way: ast.operator, left: object, right: object) -> Number | None:
    """The result of an operation on two numbers.

    None where it has none, or none that is a real number, and where it may be too large to work out.
    """
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return None
    if isinstance(way, ast.Pow | ast.LShift) and abs(right) >= _LARGEST_EXPONENT:
        return None
    if isinstance(way, ast.Pow) and abs(left) > _LARGEST_BASE:
        return None
    try:
        result = _OPERATIONS[type(way)](left, right)
    except (ArithmeticError, KeyError, TypeError, ValueError):
        return None
    if isinstance(result, int) and result.bit_length() > _LONGEST_RESULT:
        return None
    return result if isinstance(result, int | float) else None


def compare(way: ast.cmpop, left: object, right: object) -> bool | None:
    """The result of a comparison; None where the two cannot be compared."""
    try:
        return bool(_COMPARISONS[type(way)](left, right))
    except (KeyError, TypeError, ValueError):
        return None
