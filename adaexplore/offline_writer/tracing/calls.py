"""The torch functions, tensor methods and nn modules that the writer understands."""

from collections.abc import Mapping
from dataclasses import dataclass

from adaexplore.core.text.syntax import literal
from adaexplore.offline_writer.tracing import build
from adaexplore.offline_writer.tracing.graph import (
    Axes,
    Channels,
    Constant,
    Drop,
    Host,
    Items,
    MatMul,
    Pointwise,
    Reduction,
    Value,
    is_tensor,
    scalar_type_of,
)


@dataclass(frozen=True)
class Call:
    """A call with translated arguments, the input under ``""``; ``host`` is the same call by torch."""

    arguments: Mapping[str, Value]
    host: Host

    def get(self, name: str) -> Value | None:
        """Return the argument; None if it is missing or None."""
        value = self.arguments.get(name)
        return None if isinstance(value, Host) and value.text == "None" else value

    def constant(self, name: str, default: object) -> object:
        """Return the argument's value if it is a literal or missing, else a value that equals nothing."""
        value = self.get(name)
        if isinstance(value, Constant):
            return value.number
        if isinstance(value, Host) and value.text[:1] in "'\"":
            return literal(value.text)
        return default if value is None else value


UNARY = {
    name: name
    for name in (
        "neg", "reciprocal", "square", "abs", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2", "log1p",
        "sin", "cos", "tan", "erf", "erfc", "sigmoid", "logsigmoid", "tanh", "sinh", "cosh", "relu", "relu6",
        "silu", "mish", "softsign", "tanhshrink", "selu", "hardsigmoid", "hardswish",
    )
} | {"logical_not": "not"}  # fmt: skip
BINARY = {
    name: name
    for name in ("add", "sub", "mul", "div", "pow", "maximum", "minimum", "gt", "ge", "lt", "le", "eq", "ne")
} | {"multiply": "mul", "logical_and": "and", "logical_or": "or"}
# name -> parameters after the input, with defaults; they are the operation's operands in this order
PARAMETRIC: dict[str, dict[str, float]] = {
    "leaky_relu": {"negative_slope": 0.01},
    "elu": {"alpha": 1.0},
    "celu": {"alpha": 1.0},
    "softplus": {"beta": 1.0, "threshold": 20.0},
    "softshrink": {"lambd": 0.5},
}
# layer -> function, parameters of the constructor
LAYERS: dict[str, tuple[str, ...]] = {
    "LeakyReLU": ("leaky_relu", "negative_slope", "inplace"), "ELU": ("elu", "alpha", "inplace"),
    "CELU": ("celu", "alpha", "inplace"), "GELU": ("gelu", "approximate"),
    "Softplus": ("softplus", "beta", "threshold"), "Hardtanh": ("hardtanh", "min_val", "max_val", "inplace"),
    "Softshrink": ("softshrink", "lambd"), "Softmax": ("softmax", "dim"),
    "LogSoftmax": ("log_softmax", "dim"), "Linear": ("linear", "in_features", "out_features", "bias"),
    "LayerNorm": ("layer_norm", "normalized_shape", "eps", "elementwise_affine", "bias"),
    "RMSNorm": ("rms_norm", "normalized_shape", "eps", "elementwise_affine"),
    "GroupNorm": ("group_norm", "num_groups", "num_channels", "eps", "affine"),
} | {
    name: (name.lower(), "inplace")
    for name in (
        "ReLU", "ReLU6", "SELU", "SiLU", "Mish", "Sigmoid", "Tanh", "Softsign", "Hardswish", "Hardsigmoid",
        "LogSigmoid", "Tanhshrink",
    )
}  # fmt: skip
_REDUCTIONS = {"sum": "sum", "mean": "mean", "max": "max", "min": "min", "amax": "max", "amin": "min"}
_SIGNATURES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(UNARY, ("inplace",)),
    **dict.fromkeys(BINARY, ("other", "alpha")),
    **{name: (*defaults, "inplace") for name, defaults in PARAMETRIC.items()},
    **dict.fromkeys(_REDUCTIONS, ("dim", "keepdim", "dtype")),
    **dict.fromkeys(("softmax", "log_softmax"), ("dim", "_stacklevel", "dtype")),
    **dict.fromkeys(("matmul", "bmm", "mm"), ("other",)),
    **dict.fromkeys(("detach", "contiguous", "float"), ()),
    "hardtanh": ("min_val", "max_val", "inplace"),
    "clamp": ("min", "max"),
    "clamp_min": ("min",),
    "clamp_max": ("max",),
    "gelu": ("approximate",),
    "logsumexp": ("dim", "keepdim"),
    "norm": ("p", "dim", "keepdim"),
    "normalize": ("p", "dim", "eps"),
    "layer_norm": ("normalized_shape", "weight", "bias", "eps"),
    "rms_norm": ("normalized_shape", "weight", "eps"),
    "group_norm": ("num_groups", "weight", "bias", "eps"),
    "linear": ("weight", "bias"),
    "where": ("x", "y"),
    "masked_fill": ("mask", "value"),
}
_RENAMED = {
    "input": "", "condition": "", "tensor": "", "exponent": "other", "keepdims": "keepdim", "axis": "dim",
    "mat2": "other",
}  # fmt: skip


def bind(name: str, positional: list[Value], keywords: dict[str, Value], host: Host) -> Call | None:
    """Return arguments by name; None if the function is unknown or they do not fit the known parameters."""
    if name not in _SIGNATURES:
        return None
    names = ["", *_SIGNATURES[name]]
    named = {key if key in names else _RENAMED.get(key, key): value for key, value in keywords.items()}
    free = [each for each in names if each or "" not in named]
    arguments = dict(zip(free, positional, strict=False))
    if len(positional) > len(free) or not named.keys() <= set(names) or named.keys() & arguments.keys():
        return None
    return Call(arguments | named, host) if "" in arguments | named else None


def translate(name: str, call: Call) -> Value | None:
    """Return the call as graph values, or None to leave it to torch."""
    x = call.arguments[""]
    if name in BINARY:
        other, alpha = call.get("other"), call.get("alpha")
        if alpha is not None:
            other = build.pointwise("mul", other, alpha) if name in ("add", "sub") else None
        return build.pointwise(BINARY[name], x, other)
    if not is_tensor(x):
        return None
    if name in UNARY:
        return build.pointwise(UNARY[name], x)
    if name in PARAMETRIC:
        values = [call.get(key) or Constant(default) for key, default in PARAMETRIC[name].items()]
        return build.pointwise(name, x, *values)
    match name:
        case "where":
            return build.pointwise("where", x, call.get("x"), call.get("y"))
        case "masked_fill":
            return build.pointwise("where", call.get("mask"), call.get("value"), x)
        case "gelu":
            kind = {"none": "gelu", "tanh": "gelu_tanh"}.get(str(call.constant("approximate", "none")))
            return None if kind is None else build.pointwise(kind, x)
        case "hardtanh":
            low, high = call.get("min_val") or Constant(-1.0), call.get("max_val") or Constant(1.0)
            return build.pointwise("clamp_max", build.pointwise("clamp_min", x, low), high)
        case "clamp" | "clamp_min" | "clamp_max":
            clamped: Value | None = x
            for key in ("min", "max"):
                limit = call.get(key)
                clamped = clamped if limit is None else build.pointwise(f"clamp_{key}", clamped, limit)
            return clamped
        case "detach":
            return x
        case "contiguous":  # kernels write contiguous outputs anyway
            return x if isinstance(x, Pointwise | Reduction | Drop) else None
        case "float":
            return Pointwise("to_float", (x,), "f")
        case "linear":
            weight = call.get("weight")
            return _matmul(x, None if weight is None else Host("{0}.t()", (weight,), "tensor"), call)
        case "matmul" | "bmm" | "mm":
            return _matmul(x, call.get("other"), call)
        case "normalize" | "layer_norm" | "rms_norm" | "group_norm":
            return _normalisation(name, x, call)
    return _reduction(name, x, call)


def _axes(value: Value | None) -> Axes | None:
    """Return axes from a dim argument; None if they are known not to be adjacent."""
    if isinstance(value, Items):
        ordered = sorted(int(item.number) for item in value.values if isinstance(item, Constant))
        adjacent = ordered == list(range(ordered[0], ordered[0] + len(value.values))) if ordered else False
        return Axes(repr(tuple(ordered))) if adjacent else None
    if isinstance(value, Constant):
        return Axes(repr(int(value.number)))
    return Axes(value.text) if isinstance(value, Host) and not value.operands else None


def _reduction(name: str, x: Value, call: Call) -> Value | None:
    dim, keepdim = call.get("dim"), call.constant("keepdim", False)
    if call.get("dtype") is not None or not isinstance(keepdim, bool) or scalar_type_of(x) != "f":
        return None
    if name in ("max", "min") and dim is not None and is_tensor(dim):
        return build.pointwise(f"{name}imum", x, dim)
    axes = _axes(dim)
    if axes is None:
        return None
    match name:
        case "max" | "min":  # values from a kernel, indices from torch
            values = build.reduction(name, x, axes, keepdim)
            return None if values is None else Items((values, Host("{0}[1]", (call.host,), "tensor", "i")))
        case "softmax" | "log_softmax":
            return build.softmax(x, axes, name == "log_softmax")
        case "logsumexp":
            return build.logsumexp(x, axes, keepdim)
        case "norm":
            return build.norm(x, axes, keepdim) if call.constant("p", 2) in (2, "fro") else None
    return build.reduction(_REDUCTIONS[name], x, axes, keepdim)


def _normalisation(name: str, x: Value, call: Call) -> Value | None:
    if name == "normalize":
        axes = _axes(call.get("dim") or Constant(1))
        if axes is None or call.constant("p", 2) != 2:
            return None
        length = build.norm(x, axes, True)
        return build.pointwise(
            "div", x, build.pointwise("clamp_min", length, call.get("eps") or Constant(1e-12))
        )
    weight, bias = call.get("weight"), call.get("bias")
    if name == "group_norm":
        axes = _axes(call.get("num_groups"))
        axes = None if axes is None else Axes(axes.text, grouped=True)
        weight, bias = (None if vector is None else Channels(vector) for vector in (weight, bias))
    else:
        axes = _trailing(call.get("normalized_shape"))
    if axes is None or (name == "rms_norm" and call.get("eps") is None):
        return None
    epsilon = call.get("eps") or Constant(1e-5)
    return build.scaled(build.standardise(x, axes, epsilon, name != "rms_norm"), weight, bias)


def _trailing(shape: Value | None) -> Axes | None:
    """Return as many last dimensions as ``shape`` has."""
    if isinstance(shape, Constant) or (isinstance(shape, Items) and len(shape.values) == 1):
        return Axes("-1")
    if isinstance(shape, Items):
        return Axes(repr(tuple(range(-len(shape.values), 0))))
    if isinstance(shape, Host) and not shape.operands:
        return Axes(f"tuple(range(-len({shape.text}), 0))")
    return None


def _matmul(left: Value, right: Value | None, call: Call) -> Value | None:
    if right is None or not is_tensor(right) or not scalar_type_of(left) == scalar_type_of(right) == "f":
        return None
    return MatMul(left, right, call.get("bias"), call.host)
