"""Which torch functions, tensor methods and nn modules the writer understands."""

from __future__ import annotations

from dataclasses import dataclass

from adaexplore.core.syntax import literal
from adaexplore.llm.offline import build
from adaexplore.llm.offline.graph import (
    Axes,
    Channels,
    Constant,
    Drop,
    Extremum,
    Host,
    Items,
    MatMul,
    Pointwise,
    Reduction,
    Total,
    Value,
    is_scalar,
    is_tensor,
    scalar_type_of,
)


@dataclass(frozen=True)
class Call:
    """A call with its arguments translated; ``host`` is the same call left to torch."""

    arguments: dict[str, Value]
    host: Host

    def get(self, name: str) -> Value | None:
        """The argument, None where it was left out or given as None."""
        value = self.arguments.get(name)
        return None if value is None or (isinstance(value, Host) and value.text == "None") else value

    def constant(self, name: str, default: object) -> object:
        """The argument's value where it is a literal or left out, else a value equal to nothing."""
        value = self.get(name)
        if value is None:
            return default
        if isinstance(value, Constant):
            return value.number
        if isinstance(value, Host) and value.text[:1] in "'\"":
            return literal(value.text)
        return value


_UNARY = (
    "neg", "reciprocal", "square", "abs", "sqrt", "rsqrt", "exp", "exp2", "expm1", "log", "log2",
    "log10", "log1p", "sin", "cos", "tan", "erf", "erfc", "floor", "ceil", "sign", "frac", "sigmoid",
    "logsigmoid", "tanh", "sinh", "cosh", "relu", "relu6", "silu", "mish", "softsign", "tanhshrink",
    "selu", "hardsigmoid", "hardswish", "isnan",
)  # fmt: skip
UNARY = {name: name for name in _UNARY} | {
    "absolute": "abs",
    "negative": "neg",
    "swish": "silu",
    "logical_not": "not",
    "bitwise_not": "not",
    "expit": "sigmoid",
}
BINARY = {
    "add": "add", "sub": "sub", "subtract": "sub", "mul": "mul", "multiply": "mul", "div": "div",
    "divide": "div", "true_divide": "div", "pow": "pow", "maximum": "maximum", "minimum": "minimum",
    "fmax": "maximum", "fmin": "minimum", "gt": "gt", "ge": "ge", "lt": "lt", "le": "le", "eq": "eq",
    "ne": "ne", "greater": "gt", "less": "lt", "logical_and": "and", "logical_or": "or",
    "bitwise_and": "and", "bitwise_or": "or", "logical_xor": "xor", "clamp_min": "clamp_min",
    "clamp_max": "clamp_max",
}  # fmt: skip
# name -> parameters after the input, with defaults; they are the operation's operands in this order
PARAMETRIC: dict[str, dict[str, float]] = {
    "leaky_relu": {"negative_slope": 0.01},
    "elu": {"alpha": 1.0},
    "celu": {"alpha": 1.0},
    "softplus": {"beta": 1.0, "threshold": 20.0},
    "softshrink": {"lambd": 0.5},
    "hardshrink": {"lambd": 0.5},
}
MODULES = {
    "ReLU": "relu", "ReLU6": "relu6", "LeakyReLU": "leaky_relu", "ELU": "elu", "CELU": "celu", "SELU": "selu",
    "GELU": "gelu", "SiLU": "silu", "Mish": "mish", "Sigmoid": "sigmoid", "Tanh": "tanh",
    "Softplus": "softplus", "Softsign": "softsign", "Hardtanh": "hardtanh", "Hardswish": "hardswish",
    "Hardsigmoid": "hardsigmoid", "LogSigmoid": "logsigmoid", "Tanhshrink": "tanhshrink",
    "Softshrink": "softshrink", "Hardshrink": "hardshrink", "Threshold": "threshold", "Softmax": "softmax",
    "LogSoftmax": "log_softmax", "Identity": "identity", "Linear": "linear", "LayerNorm": "layer_norm",
    "GroupNorm": "group_norm", "RMSNorm": "rms_norm", "MSELoss": "mse_loss", "L1Loss": "l1_loss",
    "SmoothL1Loss": "smooth_l1_loss", "HuberLoss": "huber_loss",
}  # fmt: skip
REDUCTIONS = {"sum": "sum", "mean": "mean", "amax": "max", "amin": "min"}
_DIM = ("dim", "keepdim", "dtype")
_SIGNATURES: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(UNARY, ("inplace",)),
    **dict.fromkeys(BINARY, ("other", "alpha")),
    **{name: (*defaults, "inplace") for name, defaults in PARAMETRIC.items()},
    **dict.fromkeys(REDUCTIONS, _DIM),
    "hardtanh": ("min_val", "max_val", "inplace"),
    "clamp": ("min", "max"),
    "clip": ("min", "max"),
    "gelu": ("approximate",),
    "threshold": ("threshold", "value", "inplace"),
    "softmax": ("dim", "_stacklevel", "dtype"),
    "log_softmax": ("dim", "_stacklevel", "dtype"),
    "logsumexp": ("dim", "keepdim"),
    "max": ("dim", "keepdim"),
    "min": ("dim", "keepdim"),
    "var": ("dim", "unbiased", "keepdim", "correction"),
    "std": ("dim", "unbiased", "keepdim", "correction"),
    "norm": ("p", "dim", "keepdim"),
    "normalize": ("p", "dim", "eps"),
    "layer_norm": ("normalized_shape", "weight", "bias", "eps"),
    "rms_norm": ("normalized_shape", "weight", "eps"),
    "group_norm": ("num_groups", "weight", "bias", "eps"),
    "linear": ("weight", "bias"),
    "matmul": ("other",),
    "bmm": ("other",),
    "mm": ("other",),
    "where": ("x", "y"),
    "masked_fill": ("mask", "value"),
    "lerp": ("end", "weight"),
    "addcmul": ("tensor1", "tensor2", "value"),
    "identity": (),
    "clone": (),
    "detach": (),
    "contiguous": (),
    "float": (),
    "bool": (),
    "long": (),
    "mse_loss": ("target", "reduction"),
    "l1_loss": ("target", "reduction"),
    "smooth_l1_loss": ("target", "reduction", "beta"),
    "huber_loss": ("target", "reduction", "delta"),
}  # fmt: skip
_RENAMED = {"input": "", "exponent": "other", "keepdims": "keepdim", "axis": "dim", "mat2": "other"}


def understood(name: str) -> bool:
    """Whether a function or method of this name may be computed in a kernel."""
    return name in _SIGNATURES


def bind(name: str, positional: list[Value], keywords: dict[str, Value], host: Host) -> Call | None:
    """Arguments by name, the input as ``""``; None where they do not fit what is understood."""
    names = ["", *_SIGNATURES[name]]
    if name in ("clamp_min", "clamp_max"):
        names[1] = name[-3:]
    if len(positional) > len(names):
        return None
    arguments = dict(zip(names, positional, strict=False))
    for keyword, value in keywords.items():
        key = keyword if keyword in names else _RENAMED.get(keyword, keyword)
        if key not in names or key in arguments:
            return None
        arguments[key] = value
    if name in ("clamp_min", "clamp_max") and name[-3:] in arguments:
        arguments["other"] = arguments.pop(name[-3:])
    return Call(arguments, host) if "" in arguments else None


def translate(name: str, call: Call) -> Value | None:
    """The call as graph values, or None to leave it to torch."""
    x = call.arguments[""]
    if name == "where":
        chosen, other = call.get("x"), call.get("y")
        return build.pointwise("where", x, chosen, other) if chosen and other else None
    if not is_tensor(x):
        if name in BINARY and (other := call.get("other")) and is_scalar(x) and is_tensor(other):
            return _binary(name, call)
        return None
    if name in UNARY:
        return build.pointwise(UNARY[name], x)
    if name in BINARY:
        return _binary(name, call)
    if name in PARAMETRIC:
        values = [call.get(key) or Constant(default) for key, default in PARAMETRIC[name].items()]
        return build.pointwise(name, x, *values)
    if name in ("matmul", "bmm", "mm", "linear"):
        return _matmul(name, call)
    if name.endswith("_norm") or name == "normalize":
        return _normalisation(name, call)
    if name.endswith("_loss"):
        return _loss(name, call)
    return _reduction(name, call) or _activation(name, call)


def _binary(name: str, call: Call) -> Value | None:
    other, alpha = call.get("other"), call.get("alpha")
    if other is None or (alpha is not None and name not in ("add", "sub", "subtract")):
        return None
    if alpha is not None:
        product = build.pointwise("mul", other, alpha)
        if product is None:
            return None
        other = product
    return build.pointwise(BINARY[name], call.arguments[""], other)


def _activation(name: str, call: Call) -> Value | None:
    x = call.arguments[""]
    match name:
        case "gelu":
            kind = {"none": "gelu", "tanh": "gelu_tanh"}.get(str(call.constant("approximate", "none")))
            return None if kind is None else build.pointwise(kind, x)
        case "hardtanh":
            low = call.get("min_val") or Constant(-1.0)
            high = call.get("max_val") or Constant(1.0)
            return build.chain(build.pointwise("clamp_min", x, low), "clamp_max", high)
        case "clamp" | "clip":
            clamped: Value | None = x
            for limit, operation in ((call.get("min"), "clamp_min"), (call.get("max"), "clamp_max")):
                clamped = clamped if limit is None else build.chain(clamped, operation, limit)
            return clamped
        case "threshold":
            bound, value = call.get("threshold"), call.get("value")
            return build.pointwise("threshold", x, bound, value) if bound and value else None
        case "masked_fill":
            mask, value = call.get("mask"), call.get("value")
            return build.pointwise("where", mask, value, x) if mask and value else None
        case "lerp":
            end, weight = call.get("end"), call.get("weight")
            if end is None or weight is None:
                return None
            step = build.chain(build.pointwise("sub", end, x), "mul", weight)
            return None if step is None else build.pointwise("add", x, step)
        case "addcmul":
            first, second = call.get("tensor1"), call.get("tensor2")
            if first is None or second is None:
                return None
            product = build.chain(
                build.pointwise("mul", first, second), "mul", call.get("value") or Constant(1)
            )
            return None if product is None else build.pointwise("add", x, product)
        case "identity" | "clone" | "detach":
            return x
        case "contiguous":  # what a kernel writes is contiguous anyway
            return x if isinstance(x, Pointwise | Reduction | Drop) else None
        case "float":
            return Pointwise("to_float", (x,), "f")
        case "bool":
            return build.pointwise("to_bool", x)
    return None


def _axes(value: Value) -> Axes | None:
    """Axes from a dim argument; None where they are known not to be adjacent."""
    if isinstance(value, Items):
        numbers = [item.number for item in value.values if isinstance(item, Constant)]
        whole = [int(number) for number in numbers]
        if len(numbers) != len(value.values) or not whole:
            return None
        ordered = sorted(whole)
        if ordered != list(range(ordered[0], ordered[0] + len(ordered))):
            return None
        return Axes(repr(tuple(ordered)))
    if isinstance(value, Constant):
        return Axes(repr(int(value.number)))
    if isinstance(value, Host) and not value.operands:
        return Axes(value.text)
    return None


def _reduction(name: str, call: Call) -> Value | None:
    x, dim = call.arguments[""], call.get("dim")
    if call.get("dtype") is not None:
        return None
    keepdim = call.constant("keepdim", False)
    if not isinstance(keepdim, bool):
        return None
    if name in ("max", "min") and dim is not None and is_tensor(dim):
        return build.pointwise(f"{name}imum", x, dim)
    if name in ("sum", "mean", "max", "min", "amax", "amin") and dim is None:
        return Total(name[-3:] if name[0] == "a" else name, x)
    order = call.constant("p", 2)
    if name == "norm":
        order = 2 if order == "fro" else order
        if not isinstance(order, int | float):
            return None
        if dim is None:
            squares = build.pointwise("square", x)
            total = None if squares is None or order != 2 else Total("sum", squares)
            return None if total is None else build.pointwise("sqrt", total)
    if dim is None or (axes := _axes(dim)) is None:
        return None
    match name:
        case "sum" | "mean" | "amax" | "amin":
            return build.reduction(REDUCTIONS[name], x, axes, keepdim)
        case "max" | "min":
            values = build.reduction(name, x, axes, keepdim)
            return None if values is None else Extremum(values, call.host)
        case "softmax" | "log_softmax":
            return build.softmax(x, axes, name == "log_softmax")
        case "logsumexp":
            return build.logsumexp(x, axes, keepdim)
        case "norm":
            return build.norm(x, float(order), axes, keepdim) if isinstance(order, int | float) else None
        case "var" | "std":
            unbiased, correction = call.constant("unbiased", True), call.constant("correction", None)
            if not isinstance(unbiased, bool) or not isinstance(correction, int | None):
                return None
            count = int(unbiased) if correction is None else correction
            inner = build.variance(x, axes, True, str(count) if count else "")
            return build.drop(inner if name == "var" else build.chain(inner, "sqrt"), axes, keepdim)
    return None


def _normalisation(name: str, call: Call) -> Value | None:
    x = call.arguments[""]
    weight, bias = call.get("weight"), call.get("bias")
    epsilon = call.get("eps") or Constant(1e-5)
    match name:
        case "normalize":
            axes = _axes(call.get("dim") or Constant(1))
            order = call.constant("p", 2)
            if axes is None or not isinstance(order, int | float):
                return None
            length = build.norm(x, float(order), axes, True)
            bounded = build.chain(length, "clamp_min", call.get("eps") or Constant(1e-12))
            return None if bounded is None else build.pointwise("div", x, bounded)
        case "layer_norm" | "rms_norm":
            axes = _trailing(call.get("normalized_shape"))
            if axes is None or (name == "rms_norm" and call.get("eps") is None):
                return None
            return build.scaled(
                build.standardise(x, axes, epsilon, centred=name == "layer_norm"), weight, bias
            )
        case "group_norm":
            groups = call.get("num_groups")
            if isinstance(groups, Constant):
                text = repr(groups.number)
            elif isinstance(groups, Host) and not groups.operands:
                text = groups.text
            else:
                return None
            return build.scaled(
                build.standardise(x, Axes(text, grouped=True), epsilon),
                None if weight is None else Channels(weight),
                None if bias is None else Channels(bias),
            )
    return None


def _trailing(shape: Value | None) -> Axes | None:
    """The last dimensions, as many as ``shape`` has."""
    if isinstance(shape, Constant):
        return Axes("-1")
    if isinstance(shape, Items):
        count = len(shape.values)
        return Axes("-1" if count == 1 else repr(tuple(range(-count, 0))))
    if isinstance(shape, Host) and not shape.operands:
        return Axes(f"tuple(range(-len({shape.text}), 0))")
    return None


def _matmul(name: str, call: Call) -> Value | None:
    right = call.get("weight" if name == "linear" else "other")
    if right is None or not is_tensor(right):
        return None
    if scalar_type_of(right) != "f" or scalar_type_of(call.arguments[""]) != "f":
        return None
    if name == "linear":
        right = Host("{0}.t()", (right,), "tensor")
    return MatMul(call.arguments[""], right, call.get("bias"), call.host)


def _loss(name: str, call: Call) -> Value | None:
    target = call.get("target")
    kind = call.constant("reduction", "mean")
    distance = None if target is None else build.pointwise("sub", call.arguments[""], target)
    if distance is None or kind not in ("mean", "sum", "none"):
        return None
    size = build.pointwise("abs", distance)
    squares = build.pointwise("square", distance)
    loss = squares if name == "mse_loss" else size
    if name in ("smooth_l1_loss", "huber_loss"):
        key = "beta" if name == "smooth_l1_loss" else "delta"
        width = call.constant(key, 1.0)
        if not isinstance(width, int | float) or width <= 0 or size is None:
            return None
        scale = 0.5 / width if key == "beta" else 0.5
        slope = 1.0 if key == "beta" else float(width)
        inside = build.pointwise("lt", size, Constant(width))
        curve = build.chain(squares, "mul", Constant(scale))
        line = build.chain(build.pointwise("sub", size, Constant(0.5 * width)), "mul", Constant(slope))
        if inside is None or curve is None or line is None:
            return None
        loss = build.pointwise("where", inside, curve, line)
    return loss if loss is None or kind == "none" else Total(str(kind), loss)
