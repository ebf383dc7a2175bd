"""Operators on values that may be unknown."""

from __future__ import annotations

import ast

from adaexplore.core import arithmetic


class Unknown:
    """The one value of its type stands for what cannot be known without running."""

    def __repr__(self) -> str:
        """For messages of tests."""
        return "UNKNOWN"


UNKNOWN = Unknown()


def too_long(value: object) -> bool:
    """Whether a literal is a number of more than 4,096 bits, whose digits Python may refuse to write."""
    return isinstance(value, int) and value.bit_length() > 4096


def operate(way: ast.operator, left: object, right: object) -> object:
    """The result of an operation on two numbers, or UNKNOWN."""
    return _or_unknown(arithmetic.operate(way, left, right))


def compare(way: ast.cmpop, left: object, right: object) -> object:
    """The result of a comparison, or UNKNOWN."""
    if left is UNKNOWN or right is UNKNOWN:
        return UNKNOWN
    return _or_unknown(arithmetic.compare(way, left, right))


def _or_unknown(result: arithmetic.Number | None) -> object:
    return UNKNOWN if result is None else result
