"""Constructors of graph values: primitive operations, and torch's compositions of them.

A constructor returns None if no kernel could compute it for these operands; the caller then leaves the
expression to torch.
"""

from adaexplore.offline_writer.tracing.graph import (
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

_POWERS = {2: "square", 3: "cube", 0.5: "sqrt", -0.5: "rsqrt", -1: "reciprocal"}
WRAPPED = "torch.tensor({0})"
_COMPARISONS = frozenset({"gt", "ge", "lt", "le", "eq", "ne", "and", "or", "not"})


def pointwise(name: str, *operands: Value | None) -> Value | None:
    """Return an element-wise operation on tensors and numbers, at least one of them a floating tensor."""
    known = [_unwrapped(operand) for operand in operands if operand is not None]
    tensors = [operand for operand in known if is_tensor(operand)]
    types = {scalar_type_of(operand) for operand in (tensors[1:] if name == "where" else tensors)}
    if len(known) < len(operands) or not all(is_tensor(each) or is_scalar(each) for each in known):
        return None
    if name == "pow" and isinstance(known[1], Constant):
        if known[1].number == 1:
            return known[0]
        name = _POWERS.get(known[1].number, name)
        known = known[:1]
    if name == "where" and not (is_tensor(known[0]) and scalar_type_of(known[0]) == "b"):
        return None
    if name in _COMPARISONS:
        logic = name in ("and", "or", "not")
        fits = types == {"b"} and len(tensors) == len(known) if logic else bool(tensors)
        return Pointwise(name, tuple(known), "b") if fits else None
    return Pointwise(name, tuple(known), "f") if "f" in types and name != "pow" else None


def _unwrapped(value: Value) -> Value:
    """Return the number in ``torch.tensor(number)``, which promotes like a number."""
    return value.operands[0] if isinstance(value, Host) and value.text == WRAPPED else value


def reduction(name: str, value: Value | None, axes: Axes, keepdim: bool) -> Value | None:
    if value is None or not is_tensor(value) or scalar_type_of(value) != "f":
        return None
    return drop(Reduction(name, value, axes), axes, keepdim)


def drop(value: Value | None, axes: Axes, keepdim: bool) -> Value | None:
    """Return ``value`` without its reduced dimensions, unless ``keepdim``."""
    return value if value is None or keepdim else Drop(value, axes)


def softmax(value: Value, axes: Axes, log: bool) -> Value | None:
    """Return softmax or its logarithm, shifted by the maximum."""
    shifted = pointwise("sub", value, reduction("max", value, axes, True))
    weights = pointwise("exp", shifted)
    total = reduction("sum", weights, axes, True)
    return pointwise("sub", shifted, pointwise("log", total)) if log else pointwise("div", weights, total)


def logsumexp(value: Value, axes: Axes, keepdim: bool) -> Value | None:
    """Return log(sum(exp(value))), shifted by the maximum."""
    top = reduction("max", value, axes, True)
    total = reduction("sum", pointwise("exp", pointwise("sub", value, top)), axes, True)
    return drop(pointwise("add", top, pointwise("log", total)), axes, keepdim)


def norm(value: Value, axes: Axes, keepdim: bool) -> Value | None:
    """Return the Euclidean norm."""
    squares = reduction("sum", pointwise("square", value), axes, True)
    return drop(pointwise("sqrt", squares), axes, keepdim)


def standardise(value: Value, axes: Axes, epsilon: Value, centred: bool = True) -> Value | None:
    """Return (value - mean) / sqrt(variance + epsilon), or value / rms."""
    base = pointwise("sub", value, reduction("mean", value, axes, True)) if centred else value
    squares = reduction("mean", pointwise("square", base), axes, True)
    return pointwise("mul", base, pointwise("rsqrt", pointwise("add", squares, epsilon)))


def scaled(value: Value | None, weight: Value | None, bias: Value | None) -> Value | None:
    """Return ``value * weight + bias``, either of which may be missing."""
    value = value if weight is None else pointwise("mul", value, weight)
    return value if bias is None else pointwise("add", value, bias)
