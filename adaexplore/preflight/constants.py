"""Arithmetic on values that may be unknown."""

from __future__ import annotations

import ast


class Unknown:
    """The one value of its type stands for what cannot be known without running."""

    def __repr__(self) -> str:
        """For messages of tests."""
        return "UNKNOWN"


UNKNOWN = Unknown()

_LARGE = 1024


def operate(operator: ast.operator, left: object, right: object) -> object:
    """The result of an operation on two numbers, or UNKNOWN."""
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return UNKNOWN
    try:
        return _number(operator, left, right)
    except ArithmeticError:
        return UNKNOWN


def _number(operator: ast.operator, left: float, right: float) -> object:
    match operator:
        case ast.Add():
            return left + right
        case ast.Sub():
            return left - right
        case ast.Mult():
            return left * right
        case ast.FloorDiv():
            return left // right
        case ast.Div():
            return left / right
        case ast.Mod():
            return left % right
        case ast.Pow() if abs(left) < _LARGE and 0 <= right < 64:
            return left**right
        case ast.LShift() if isinstance(left, int) and isinstance(right, int) and 0 <= right < 64:
            return left << right
        case ast.RShift() if isinstance(left, int) and isinstance(right, int) and right >= 0:
            return left >> right
        case _:
            return UNKNOWN


def compare(operator: ast.cmpop, left: object, right: object) -> object:
    """The result of a comparison, or UNKNOWN."""
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    if isinstance(operator, ast.Eq):
        return left == right
    if isinstance(operator, ast.NotEq):
        return left != right
    if not isinstance(left, int | float) or not isinstance(right, int | float):
        return UNKNOWN
    match operator:
        case ast.Lt():
            return left < right
        case ast.LtE():
            return left <= right
        case ast.Gt():
            return left > right
        case ast.GtE():
            return left >= right
        case _:
            return UNKNOWN
