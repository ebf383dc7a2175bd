"""``tl.reduce`` and ``tl.associative_scan`` on NumPy arrays, for any combining function."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import TensorHandle

from online_judge.cpu.interpreter.number_formats import Array

Operand: TypeAlias = tl.tensor | tuple[tl.tensor, ...]
Combine = Callable[..., Any]
_REDUCTIONS: dict[str, Combine] = {
    "_sum_combine": np.add.reduce,
    "_elementwise_max": np.fmax.reduce,
    "_elementwise_min": np.fmin.reduce,
}
_SCANS: dict[str, Combine] = {"_sum_combine": np.cumsum, "_prod_combine": np.cumprod}


def reduce(
    input: Operand,
    axis: int | tl.constexpr | None,
    combine_fn: Combine,
    keep_dims: bool | tl.constexpr = False,
    reduction_ordering: object = None,
    **_: object,
) -> Operand:
    """Reduce one tensor, or a tuple of tensors together, along ``axis`` (None: all of it)."""
    arrays, scalars, rank = _parts(input)
    axis = plain(axis)
    if axis is None:
        arrays, along = [array.reshape(-1) for array in arrays], 0
    else:
        along = axis % rank
    arrays = _reduce_arrays(arrays, scalars, along, combine_fn)
    if plain(keep_dims):
        kept = tuple(range(rank)) if axis is None else along
        arrays = [np.expand_dims(array, kept) for array in arrays]
    return _whole(input, arrays, scalars)


def associative_scan(
    input: Operand,
    axis: int | tl.constexpr | None,
    combine_fn: Combine,
    reverse: bool | tl.constexpr = False,
    **_: object,
) -> Operand:
    """Scan one tensor, or a tuple of tensors together, along ``axis``; each result includes its element."""
    arrays, scalars, rank = _parts(input)
    along, backwards = plain(axis) % rank, plain(reverse)
    if backwards:
        arrays = [np.flip(array, along) for array in arrays]
    if standard := _standard(_SCANS, combine_fn, scalars):
        arrays = [standard(arrays[0], axis=along, dtype=arrays[0].dtype)]
    else:
        arrays = _scan_arrays(arrays, scalars, along, combine_fn)
    if backwards:
        arrays = [np.flip(array, along) for array in arrays]
    return _whole(input, arrays, scalars)


def _parts(input: Operand) -> tuple[list[Array], list[tl.dtype], int]:
    """Return arrays, element types and rank of a tensor or of a tuple of tensors."""
    tensors = input if isinstance(input, tuple | tl.tuple) else (input,)
    arrays = [tensor.handle.data for tensor in tensors]
    return arrays, [tensor.dtype for tensor in tensors], len(tensors[0].shape)


def _whole(input: Operand, arrays: list[Array], scalars: list[tl.dtype]) -> Any:
    """Return results in the form of ``input``."""
    tensors = tuple(map(_tensor, arrays, scalars))
    return tensors if isinstance(input, tuple | tl.tuple) else tensors[0]


def _standard(functions: dict[str, Combine], combine_fn: Combine, scalars: list[tl.dtype]) -> Combine | None:
    """Return NumPy's function for a combining function of the standard library on one plain tensor."""
    name = str(getattr(combine_fn, "__name__", ""))
    if len(scalars) > 1 or getattr(tl.standard, name, None) is not combine_fn:
        return None
    stored_as_bits = scalars[0] == tl.bfloat16 or scalars[0].name.startswith("fp8")
    return None if stored_as_bits else functions.get(name)


def _reduce_arrays(
    arrays: list[Array], scalars: list[tl.dtype], axis: int, combine_fn: Combine
) -> list[Array]:
    if standard := _standard(_REDUCTIONS, combine_fn, scalars):
        return [np.asarray(standard(arrays[0], axis=axis)).astype(arrays[0].dtype, copy=False)]
    before = (slice(None),) * axis
    while (length := arrays[0].shape[axis]) > 1:
        even = [array[(*before, slice(0, length - 1, 2))] for array in arrays]
        odd = [array[(*before, slice(1, length, 2))] for array in arrays]
        arrays = _combine(combine_fn, even, odd, scalars)
    return [array.squeeze(axis) for array in arrays]


def _scan_arrays(arrays: list[Array], scalars: list[tl.dtype], axis: int, combine_fn: Combine) -> list[Array]:
    """Hillis-Steele: after each step element i holds the last 2 * distance inputs up to i."""
    length = arrays[0].shape[axis]
    distance = 1
    while distance < length:
        combined = _combine(combine_fn, [np.roll(array, distance, axis) for array in arrays], arrays, scalars)
        shape = [1] * arrays[0].ndim
        shape[axis] = length
        reached = (np.arange(length) >= distance).reshape(shape)
        arrays = [np.where(reached, new, old) for new, old in zip(combined, arrays, strict=True)]
        distance *= 2
    return arrays


def _combine(
    combine_fn: Combine, left: list[Array], right: list[Array], scalars: list[tl.dtype]
) -> list[Array]:
    result = combine_fn(*map(_tensor, left, scalars), *map(_tensor, right, scalars))
    results = result if isinstance(result, tuple | tl.tuple) else (result,)
    return [
        np.broadcast_to(_data(item), left[index].shape).astype(left[index].dtype, copy=False)
        for index, item in enumerate(results)
    ]


def _data(value: object) -> Array:
    return value.handle.data if isinstance(value, tl.tensor) else np.asarray(plain(value))


def _tensor(array: Array, scalar: tl.dtype) -> tl.tensor:
    array = np.asarray(array)
    if array.ndim == 0:
        return tl.tensor(TensorHandle(array.reshape(1), scalar), scalar)
    handle = TensorHandle(np.ascontiguousarray(array), scalar)
    return tl.tensor(handle, tl.block_type(scalar, list(array.shape)))


def plain(value: object) -> Any:
    """Return the value of a compile-time constant, anything else as it is."""
    return value.value if isinstance(value, tl.constexpr) else value
