"""NumPy equivalents of the CUDA libdevice functions, by symbol."""

from collections.abc import Callable

import numpy as np
import torch

from online_judge.cpu.interpreter.number_formats import Array

Function = Callable[..., Array]


def _torch(function: Callable[..., torch.Tensor]) -> Function:
    """Turn a function of torch into one of NumPy arrays."""

    def call(*arrays: Array) -> Array:
        with torch._C.DisableTorchFunction():
            tensors = [torch.from_numpy(np.array(array)) for array in arrays]
            result: Array = function(*tensors).numpy()
            return result

    return call


erf = _torch(torch.erf)


def _round_away(x: Array) -> Array:
    rounded: Array = np.copysign(np.floor(np.abs(x) + x.dtype.type(0.5)), x)
    return rounded


# numpy's functions under libdevice's names
_SAME = (
    "ceil", "cos", "cosh", "cbrt", "copysign", "exp", "exp2", "expm1", "floor", "fmod", "hypot", "ldexp",
    "log", "log10", "log1p", "log2", "nextafter", "rint", "sin", "sinh", "sqrt", "tan", "tanh", "trunc",
)  # fmt: skip
_FLOAT: dict[str, Function] = {
    **{name: getattr(np, name) for name in _SAME},
    **{
        f"a{name}": getattr(np, f"arc{name}")
        for name in ("cos", "cosh", "sin", "sinh", "tan", "tan2", "tanh")
    },
    **{name: _torch(getattr(torch, name)) for name in ("erf", "erfc", "erfinv", "lgamma")},
    **{name: _torch(getattr(torch.special, f"bessel_{name}")) for name in ("j0", "j1", "y0", "y1")},
    "cospi": lambda x: np.cos(np.pi * x),
    "cyl_bessel_i0": _torch(torch.special.i0),
    "cyl_bessel_i1": _torch(torch.special.i1),
    "erfcinv": _torch(lambda x: torch.erfinv(1 - x)),
    "erfcx": _torch(torch.special.erfcx),
    "exp10": lambda x: np.power(x.dtype.type(10), x),
    "fabs": np.abs,
    "fdim": lambda x, y: np.where(np.isnan(x) | np.isnan(y), x + y, np.maximum(x - y, 0)),
    "fma": lambda x, y, z: x * y + z,
    "ilogb": lambda x: np.frexp(x)[1] - 1,
    "llrint": lambda x: np.rint(x).astype(np.int64),
    "llround": lambda x: _round_away(x).astype(np.int64),
    "logb": lambda x: np.floor(np.log2(np.abs(x))),
    "nearbyint": np.rint,
    "norm3d": lambda x, y, z: np.sqrt(x * x + y * y + z * z),
    "norm4d": lambda x, y, z, w: np.sqrt(x * x + y * y + z * z + w * w),
    "normcdf": _torch(torch.special.ndtr),
    "normcdfinv": _torch(torch.special.ndtri),
    "pow": np.power,
    "powi": lambda x, n: np.power(x, n.astype(x.dtype)),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "remainder": lambda x, y: x - np.rint(x / y) * y,
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "rnorm3d": lambda x, y, z: 1 / np.sqrt(x * x + y * y + z * z),
    "rnorm4d": lambda x, y, z, w: 1 / np.sqrt(x * x + y * y + z * z + w * w),
    "round": _round_away,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "saturate": lambda x: np.clip(np.nan_to_num(x, nan=0.0), 0, 1),
    "scalbn": np.ldexp,
    "sinpi": lambda x: np.sin(np.pi * x),
    "tgamma": _torch(
        lambda x: torch.where(x < 0, torch.cos(torch.pi * x.floor()), 1) * torch.lgamma(x).exp()
    ),
}
_FAST: dict[str, Function] = {
    f"fast_{name}f": _FLOAT[name]
    for name in ("cos", "exp10", "exp", "log10", "log2", "log", "pow", "sin", "tan", "tanh")
} | {"fast_fdividef": np.divide}
_ROUNDED: dict[str, Function] = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "div": np.divide,
    "sqrt": np.sqrt,
    "rsqrt": _FLOAT["rsqrt"],
    "rcp": lambda x: 1 / x,
    "ma": _FLOAT["fma"],
}
_INTEGER: dict[str, Function] = {
    "abs": np.abs,
    "llabs": np.abs,
    "clz": lambda x: x.dtype.itemsize * 8 - np.ceil(np.log2(_unsigned(x).astype(np.float64) + 1)),
    "popc": lambda x: np.bitwise_count(_unsigned(x)),
    "popcll": lambda x: np.bitwise_count(_unsigned(x)),
    "ffs": lambda x: np.where(x == 0, 0, np.log2(np.maximum((x & -x).astype(np.float64), 1)) + 1),
    "mul24": np.multiply,
    "umul24": np.multiply,
    "mulhi": lambda x, y: (x.astype(np.int64) * y.astype(np.int64)) >> 32,
    "umulhi": lambda x, y: (x.astype(np.uint64) * y.astype(np.uint64)) >> np.uint64(32),
    "hadd": lambda x, y: (x.astype(np.int64) + y) >> 1,
    "rhadd": lambda x, y: (x.astype(np.int64) + y + 1) >> 1,
    "uhadd": lambda x, y: (x.astype(np.uint64) + y) >> np.uint64(1),
    "urhadd": lambda x, y: (x.astype(np.uint64) + y + np.uint64(1)) >> np.uint64(1),
    "sad": lambda x, y, z: np.abs(x.astype(np.int64) - y) + z,
}

_PREDICATES: dict[str, Function] = {
    **{f"{name}{kind}": getattr(np, name) for name in ("isinf", "isnan", "signbit") for kind in "fd"},
    **dict.fromkeys(("finitef", "isfinited"), np.isfinite),
}
_BIT_CASTS = (
    *("float_as_int", "float_as_uint", "int_as_float", "uint_as_float"),
    *("double_as_longlong", "longlong_as_double"),
)
_CONVERSION_ROUNDING: dict[str, Function] = {"rd": np.floor, "ru": np.ceil, "rn": np.rint, "rz": np.trunc}
_INTEGER_KINDS = ("int", "uint", "ll", "ull")


def _unsigned(array: Array) -> Array:
    return array.view(np.dtype(f"u{array.dtype.itemsize}"))


def equivalent(symbol: str) -> Function | None:
    """Return the NumPy equivalent of a libdevice symbol such as ``__nv_tanhf``; None if there is none.

    Results have any dtype: the caller converts them to the return type, or reinterprets the bits if
    :func:`is_bit_cast`.
    """
    name = symbol.removeprefix("__nv_")
    for table in (_FAST, _PREDICATES, _INTEGER, _FLOAT):
        if name in table:
            return table[name]
    if name.endswith("f") and name[:-1] in _FLOAT:
        return _FLOAT[name[:-1]]
    base, _, mode = name.rpartition("_")
    if mode in _CONVERSION_ROUNDING and base:
        if base[0] in "fd" and base[1:] in _ROUNDED:
            return _ROUNDED[base[1:]]
        if base in ("fma", "fmaf"):
            return _FLOAT["fma"]
        source, _, target = base.partition("2")
        if target in _INTEGER_KINDS and source in ("float", "double"):
            return _CONVERSION_ROUNDING[mode]
        if source in (*_INTEGER_KINDS, "double") and target in ("float", "double"):
            return np.positive
    return np.positive if is_bit_cast(symbol) else None


def is_bit_cast(symbol: str) -> bool:
    """Return True if the symbol reinterprets bits instead of converting a value."""
    return symbol.removeprefix("__nv_") in _BIT_CASTS
