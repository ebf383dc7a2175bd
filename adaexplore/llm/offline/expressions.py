"""Element-wise operations in Triton: every floating value is fp32 inside a kernel.

Where torch propagates NaN, so do these: a comparison picks the replacement, never the value.
"""

from __future__ import annotations

from adaexplore.llm.offline.graph import ScalarType

_GELU_TANH = "0.7978845608028654 * ({0} + 0.044715 * {0} * {0} * {0})"

TEMPLATES: dict[str, str] = {
    "add": "{0} + {1}",
    "sub": "{0} - {1}",
    "mul": "{0} * {1}",
    "div": "{0} / {1}",
    "floor_div": "tl.floor({0} / {1})",
    "neg": "-{0}",
    "pow": "_power({0}, {1})",
    "reciprocal": "1.0 / {0}",
    "square": "{0} * {0}",
    "cube": "{0} * {0} * {0}",
    "fourth": "({0} * {0}) * ({0} * {0})",
    "abs": "tl.abs({0})",
    "sqrt": "tl.sqrt({0})",
    "rsqrt": "1.0 / tl.sqrt({0})",
    "exp": "tl.exp({0})",
    "exp2": "tl.exp2({0})",
    "expm1": "tl.exp({0}) - 1.0",
    "log": "tl.log({0})",
    "log2": "tl.log2({0})",
    "log10": "tl.log({0}) * 0.4342944819032518",
    "log1p": "tl.log(1.0 + {0})",
    "sin": "tl.sin({0})",
    "cos": "tl.cos({0})",
    "tan": "tl.sin({0}) / tl.cos({0})",
    "erf": "tl.erf({0})",
    "erfc": "1.0 - tl.erf({0})",
    "floor": "tl.floor({0})",
    "ceil": "tl.ceil({0})",
    "sign": "tl.where({0} > 0, 1.0, tl.where({0} < 0, -1.0, {0}))",
    "frac": "{0} - tl.where({0} < 0, tl.ceil({0}), tl.floor({0}))",
    "sigmoid": "tl.sigmoid({0})",
    "logsigmoid": "tl.where({0} < 0, {0}, 0.0) - tl.log(1.0 + tl.exp(-tl.abs({0})))",
    "tanh": "2.0 * tl.sigmoid(2.0 * {0}) - 1.0",
    "sinh": "0.5 * (tl.exp({0}) - tl.exp(-{0}))",
    "cosh": "0.5 * (tl.exp({0}) + tl.exp(-{0}))",
    "relu": "tl.where({0} < 0, 0.0, {0})",
    "relu6": "tl.where({0} < 0, 0.0, tl.where({0} > 6, 6.0, {0}))",
    "leaky_relu": "tl.where({0} < 0, {0} * {1}, {0})",
    "gelu": "0.5 * {0} * (1.0 + tl.erf({0} * 0.7071067811865476))",
    "gelu_tanh": "{0} * tl.sigmoid(2.0 * " + _GELU_TANH + ")",
    "silu": "{0} * tl.sigmoid({0})",
    "mish": "_mish({0})",
    "softplus": "tl.where({0} * {1} > {2}, {0}, tl.log(1.0 + tl.exp({0} * {1})) / {1})",
    "softsign": "{0} / (1.0 + tl.abs({0}))",
    "tanhshrink": "{0} - (2.0 * tl.sigmoid(2.0 * {0}) - 1.0)",
    "softshrink": "tl.where({0} > {1}, {0} - {1}, tl.where({0} < -{1}, {0} + {1}, {0} * 0.0))",
    "hardshrink": "tl.where(tl.abs({0}) <= {1}, 0.0, {0})",
    "threshold": "tl.where({0} <= {1}, {2}, {0})",
    "elu": "tl.where({0} > 0, {0}, {1} * (tl.exp({0}) - 1.0))",
    "celu": "tl.where({0} > 0, {0}, {1} * (tl.exp({0} / {1}) - 1.0))",
    "selu": "1.0507009873554805 * tl.where({0} > 0, {0}, 1.6732632423543772 * (tl.exp({0}) - 1.0))",
    "hardsigmoid": "tl.where({0} < -3, 0.0, tl.where({0} > 3, 1.0, {0} / 6.0 + 0.5))",
    "hardswish": "tl.where({0} < -3, 0.0, tl.where({0} > 3, {0}, {0} * ({0} + 3.0) / 6.0))",
    "clamp_min": "tl.where({0} < {1}, {1}, {0})",
    "clamp_max": "tl.where({0} > {1}, {1}, {0})",
    "maximum": "tl.where(({0} > {1}) | ({0} != {0}), {0}, {1})",
    "minimum": "tl.where(({0} < {1}) | ({0} != {0}), {0}, {1})",
    "where": "tl.where({0}, {1}, {2})",
    "gt": "{0} > {1}",
    "ge": "{0} >= {1}",
    "lt": "{0} < {1}",
    "le": "{0} <= {1}",
    "eq": "{0} == {1}",
    "ne": "{0} != {1}",
    "and": "{0} & {1}",
    "or": "{0} | {1}",
    "xor": "{0} ^ {1}",
    "not": "{0} == 0",
    "isnan": "{0} != {0}",
    "to_float": "{0}",
    "to_bool": "{0} != 0",
    "to_int": "{0}",
    "copy": "{0}",
}

COMPARISONS = frozenset({"gt", "ge", "lt", "le", "eq", "ne", "and", "or", "xor", "not", "isnan", "to_bool"})
ARITHMETIC = frozenset(
    {"add", "sub", "mul", "neg", "abs", "square", "cube", "fourth", "maximum", "minimum", "clamp_min"}
    | {"clamp_max", "where", "relu", "copy"}
)  # integers stay integers

HELPERS: dict[str, str] = {
    "_power": '''@triton.jit
def _power(base, exponent):
    """base ** exponent, negative bases with whole exponents included."""
    exponent = exponent * 1.0
    size = tl.exp2(exponent * tl.log2(tl.abs(base)))
    half = exponent * 0.5
    odd = tl.floor(half) != half
    whole = tl.floor(exponent) == exponent
    signed = tl.where(whole, tl.where(odd, -size, size), float("nan"))
    return tl.where(exponent == 0, 1.0, tl.where(base < 0, signed, size))
''',
    "_mish": '''@triton.jit
def _mish(x):
    """x * tanh(softplus(x)), with the hyperbolic tangent of a logarithm written out."""
    e = tl.exp(tl.where(x > 20, 20.0, x))
    n = e * (e + 2.0)
    return x * n / (n + 2.0)
''',
}


def result_type(name: str, operands: tuple[ScalarType, ...]) -> ScalarType:
    """Floating, integer or boolean, by torch's promotion of categories."""
    if name in COMPARISONS:
        return "b"
    if name == "to_int":
        return "i"
    if name not in ARITHMETIC:
        return "f"
    seen = operands[1:] if name == "where" else operands
    if "f" in seen:
        return "f"
    return "i" if "i" in seen or name not in ("where", "copy") else "b"


def render(
    name: str, operands: list[str], types: list[ScalarType], tensors: list[bool], result: ScalarType
) -> str:
    """The Triton expression of one operation.

    Args:
        name: a key of ``TEMPLATES``.
        operands: Triton expressions (names or numbers).
        types: the operands' scalar types.
        tensors: which operands are tensors in the kernel.
        result: the operation's scalar type.
    """
    ready = []
    for position, (text, kind, tensor) in enumerate(zip(operands, types, tensors, strict=True)):
        condition = name == "where" and position == 0
        if condition:
            text = text if kind == "b" and tensor else f"({text} != 0)"
        elif tensor and kind != "f" and result == "f":
            text = f"{text}.to(tl.float32)"
        elif tensor and kind == "b" and name not in COMPARISONS:
            text = f"{text}.to(tl.int32)"
        ready.append(text)
    if name == "not" and types[0] == "b":
        return f"{ready[0]} == 0"
    expression = TEMPLATES[name].format(*ready)
    return f"({expression}).to(tl.int64)" if name == "to_int" else expression
