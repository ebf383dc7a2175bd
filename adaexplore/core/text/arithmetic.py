"""Evaluate expressions of a program on known numbers, without running it."""

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
    """Return the result of an operation on two numbers.

    None without a real result, or if the result may be too large to compute.
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
    """Return the result of a comparison; None if the values cannot be compared."""
    try:
        return bool(_COMPARISONS[type(way)](left, right))
    except (KeyError, TypeError, ValueError):
        return None


def evaluate(node: ast.expr, names: Mapping[str, Any]) -> Any:
    """Return the value of an expression: arithmetic, comparisons, ``and``, ``min``, ``max``, tuples.

    Raises:
        KeyError: a name is not in ``names``.
        ValueError: it is another kind of expression, or has no result.
    """
    result = None
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -evaluate(inner, names)
        case ast.BinOp(left=left, op=way, right=right):
            result = operate(way, evaluate(left, names), evaluate(right, names))
        case ast.Compare(left=left, ops=[comparison], comparators=[right]):
            result = compare(comparison, evaluate(left, names), evaluate(right, names))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(evaluate(part, names) for part in parts)
        case ast.Tuple(elts=parts):
            return tuple(evaluate(part, names) for part in parts)
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=parts):
            return (min if name == "min" else max)(evaluate(part, names) for part in parts)
    if result is None:
        raise ValueError(f"the expression {ast.unparse(node)!r} is not understood")
    return result
