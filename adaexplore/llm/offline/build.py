"""Constructors of graph values: primitive operations, and what torch composes out of them.

A constructor answers None where the operands are not such that a kernel could compute it; the
caller then leaves the expression to torch.
"""

from __future__ import annotations

import math

from adaexplore.llm.offline.expressions import result_type
from adaexplore.llm.offline.graph import (
    Axes,
    Constant,
    Drop,
    Host,
    Pointwise,
    Reduction,
    Value,
    is_scalar,
    is_tensor,
    scalar_type_of,
)

_SYMBOLS = {"add": "+", "sub": "-", "mul": "*", "div": "/", "floor_div": "//", "pow": "**"}
WRAPPED = "torch.tensor({0})"
_COMPARE = {"gt": ">", "ge": ">=", "lt": "<", "le": "<=", "eq": "==", "ne": "!="}


def pointwise(name: str, *operands: Value) -> Value | None:
    """One element-wise operation, folded where all operands are numbers."""
    operands = tuple(map(_unwrapped, operands)) if any(map(is_tensor, operands)) else operands
    if not all(is_tensor(operand) or is_scalar(operand) for operand in operands):
        return None
    if not any(is_tensor(operand) for operand in operands):
        return _host_arithmetic(name, operands)
    if name == "pow":
        simple = _simple_power(*operands)
        if simple is not None or not is_tensor(operands[0]):
            return simple
    if name == "floor_div" and any(scalar_type_of(operand) != "f" for operand in operands[:1]):
        return None
    types = tuple(scalar_type_of(operand) for operand in operands)
    if name in ("and", "or", "xor", "not") and set(types) != {"b"}:
        return None
    return Pointwise(name, operands, result_type(name, types))


def _unwrapped(value: Value) -> Value:
    """The number in ``torch.tensor(number)``, which promotes as a number does."""
    return value.operands[0] if isinstance(value, Host) and value.text == WRAPPED else value


def chain(value: Value | None, name: str, *rest: Value) -> Value | None:
    """``pointwise`` on a value that may be missing."""
    return None if value is None else pointwise(name, value, *rest)


def _host_arithmetic(name: str, operands: tuple[Value, ...]) -> Value | None:
    symbol = {**_SYMBOLS, **_COMPARE}.get(name)
    if name == "neg":
        text = "(-{0})"
    elif symbol is not None:
        text = "({0} " + symbol + " {1})"
    else:
        return None
    numbers = [operand.number for operand in operands if isinstance(operand, Constant)]
    if len(numbers) == len(operands):
        try:
            result = eval(text.format(*numbers), {"__builtins__": {}})
        except (ArithmeticError, NameError, SyntaxError):
            result = None
        if isinstance(result, bool | int | float):
            return Constant(result)
    return Host(text, operands, "scalar")


def _simple_power(base: Value, exponent: Value) -> Value | None:
    """A power that has an operation of its own."""
    if isinstance(base, Constant) and base.number > 0 and scalar_type_of(exponent) == "f":
        return chain(pointwise("mul", exponent, Constant(math.log2(base.number))), "exp2")
    if not isinstance(exponent, Constant) or not is_tensor(base):
        return None
    if scalar_type_of(base) != "f":
        return None
    name = {2: "square", 3: "cube", 4: "fourth", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal", 1: "copy"}.get(
        float(exponent.number)
    )
    return None if name is None else pointwise(name, base)


def reduction(name: str, value: Value, axes: Axes, keepdim: bool, correction: str = "") -> Value | None:
    """A reduction over ``axes``."""
    if not is_tensor(value):
        return None
    result = Reduction(name, value, axes, correction)
    return result if keepdim else Drop(result, axes)


def drop(value: Value | None, axes: Axes, keepdim: bool) -> Value | None:
    """``value`` without its reduced dimensions, unless ``keepdim``."""
    return value if value is None or keepdim else Drop(value, axes)


def softmax(value: Value, axes: Axes, log: bool) -> Value | None:
    """Softmax or its logarithm, shifted by the maximum."""
    if not is_tensor(value):
        return None
    shifted = pointwise("sub", value, Reduction("max", value, axes))
    weights = chain(shifted, "exp")
    if shifted is None or weights is None:
        return None
    total = Reduction("sum", weights, axes)
    if not log:
        return pointwise("div", weights, total)
    return _both("sub", shifted, pointwise("log", total))


def logsumexp(value: Value, axes: Axes, keepdim: bool) -> Value | None:
    """log(sum(exp(value))), shifted by the maximum."""
    if not is_tensor(value):
        return None
    top = Reduction("max", value, axes)
    weights = chain(pointwise("sub", value, top), "exp")
    if weights is None:
        return None
    return drop(_both("add", top, pointwise("log", Reduction("sum", weights, axes))), axes, keepdim)


def variance(value: Value, axes: Axes, keepdim: bool, correction: str) -> Value | None:
    """Mean squared distance from the mean; the count is lessened by ``correction``."""
    if not is_tensor(value):
        return None
    squares = chain(pointwise("sub", value, Reduction("mean", value, axes)), "square")
    return None if squares is None else reduction("mean", squares, axes, keepdim, correction)


def norm(value: Value, order: float, axes: Axes, keepdim: bool) -> Value | None:
    """Vector norm of order 1, 2 or infinity."""
    size = pointwise("abs", value)
    if order == 1 and size is not None:
        return reduction("sum", size, axes, keepdim)
    if order == math.inf and size is not None:
        return reduction("max", size, axes, keepdim)
    squares = pointwise("square", value)
    if order == 2 and squares is not None:
        return drop(pointwise("sqrt", Reduction("sum", squares, axes)), axes, keepdim)
    return None


def standardise(value: Value, axes: Axes, epsilon: Value, centred: bool = True) -> Value | None:
    """(value - mean) / sqrt(variance + epsilon), or value / rms."""
    if not is_tensor(value):
        return None
    base = pointwise("sub", value, Reduction("mean", value, axes)) if centred else value
    squares = chain(base, "square")
    if base is None or squares is None:
        return None
    scale = chain(pointwise("add", Reduction("mean", squares, axes), epsilon), "rsqrt")
    return _both("mul", base, scale)


def scaled(value: Value | None, weight: Value | None, bias: Value | None) -> Value | None:
    """``value * weight + bias`` with either left out."""
    if weight is not None:
        value = chain(value, "mul", weight)
    if bias is not None:
        value = chain(value, "add", bias)
    return value


def _both(name: str, left: Value | None, right: Value | None) -> Value | None:
    return None if left is None or right is None else pointwise(name, left, right)
