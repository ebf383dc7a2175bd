"""``tl.reduce`` and ``tl.associative_scan`` on NumPy arrays, for any combining function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

from online_judge.cpu import triton_access

Tensor = Any
Combine = Callable[..., Any]


def reduce(
    input: Any,
    axis: Any,
    combine_fn: Any,
    keep_dims: Any = False,
    reduction_ordering: Any = None,
    **_: Any,
) -> Any:
    """Reduce one tensor, or a tuple of tensors together, along ``axis`` (None: all of it)."""
    inputs = input if isinstance(input, tuple | tl.tuple) else (input,)
    axis, keep = _plain(axis), bool(_plain(keep_dims))
    rank = len(inputs[0].shape)
    arrays = [tensor.handle.data for tensor in inputs]
    scalars = [tensor.dtype for tensor in inputs]
    if axis is None:
        arrays, along = [array.reshape(-1) for array in arrays], 0
    else:
        along = axis % rank
    results = _reduce_arrays(arrays, scalars, along, combine_fn)
    outputs = []
    for result, scalar in zip(results, scalars, strict=True):
        if keep:
            shaped = result.reshape((1,) * rank) if axis is None else np.expand_dims(result, along)
        else:
            shaped = result
        outputs.append(_tensor(shaped, scalar))
    return tuple(outputs) if isinstance(input, tuple | tl.tuple) else outputs[0]


def associative_scan(input: Any, axis: Any, combine_fn: Any, reverse: Any = False, **_: Any) -> Any:
    """Inclusive scan of one tensor, or of a tuple of tensors together, along ``axis``."""
    inputs = input if isinstance(input, tuple | tl.tuple) else (input,)
    along = _plain(axis) % len(inputs[0].shape)
    scalars = [tensor.dtype for tensor in inputs]
    arrays = [tensor.handle.data for tensor in inputs]
    if _plain(reverse):
        arrays = [np.flip(array, along) for array in arrays]
    standard = _SCANS.get(_name(combine_fn))
    if standard is not None and len(arrays) == 1 and _is_plain_number(scalars[0]):
        arrays = [standard(arrays[0], axis=along, dtype=arrays[0].dtype)]
    else:
        arrays = _scan_arrays(arrays, scalars, along, combine_fn)
    if _plain(reverse):
        arrays = [np.ascontiguousarray(np.flip(array, along)) for array in arrays]
    outputs = tuple(_tensor(array, scalar) for array, scalar in zip(arrays, scalars, strict=True))
    return outputs if isinstance(input, tuple | tl.tuple) else outputs[0]


_REDUCTIONS: dict[str, Callable[..., Any]] = {
    "_sum_combine": np.add.reduce,
    "_elementwise_max": np.fmax.reduce,
    "_elementwise_min": np.fmin.reduce,
}
_SCANS: dict[str, Callable[..., Any]] = {"_sum_combine": np.cumsum, "_prod_combine": np.cumprod}


def _name(combine_fn: Any) -> str:
    """The name of a combining function of the standard library, else an empty text."""
    name = str(getattr(combine_fn, "__name__", ""))
    return name if getattr(tl.standard, name, None) is combine_fn else ""


def _reduce_arrays(arrays: list[Any], scalars: list[Any], axis: int, combine_fn: Any) -> list[Any]:
    standard = _REDUCTIONS.get(_name(combine_fn))
    if standard is not None and len(arrays) == 1 and _is_plain_number(scalars[0]):
        return [np.asarray(standard(arrays[0], axis=axis)).astype(arrays[0].dtype, copy=False)]
    while (length := arrays[0].shape[axis]) > 1:
        even = [_take(array, axis, slice(0, length - 1, 2)) for array in arrays]
        odd = [_take(array, axis, slice(1, length, 2)) for array in arrays]
        arrays = _combine(combine_fn, even, odd, scalars)
    return [array.squeeze(axis) for array in arrays]


def _scan_arrays(arrays: list[Any], scalars: list[Any], axis: int, combine_fn: Any) -> list[Any]:
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


def _combine(combine_fn: Any, left: list[Any], right: list[Any], scalars: list[Any]) -> list[Any]:
    operands = [
        _tensor(array, scalar) for side in (left, right) for array, scalar in zip(side, scalars, strict=True)
    ]
    result = combine_fn(*operands)
    results = result if isinstance(result, tuple | tl.tuple) else (result,)
    return [
        np.broadcast_to(_data(item), left[index].shape).astype(left[index].dtype, copy=False)
        for index, item in enumerate(results)
    ]


def _data(value: Any) -> Any:
    return value.handle.data if isinstance(value, tl.tensor) else np.asarray(_plain(value))


def _take(array: Any, axis: int, part: slice) -> Any:
    return array[(slice(None),) * axis + (part,)]


def _is_plain_number(scalar: Any) -> bool:
    return scalar != tl.bfloat16 and not scalar.name.startswith("fp8")


def _tensor(array: Any, scalar: Any) -> Tensor:
    array = np.asarray(array)
    if array.ndim == 0:
        return tl.tensor(triton_access.TensorHandle(array.reshape(1), scalar), scalar)
    handle = triton_access.TensorHandle(np.ascontiguousarray(array), scalar)
    return tl.tensor(handle, tl.block_type(scalar, list(array.shape)))


def _plain(value: Any) -> Any:
    return value.value if isinstance(value, tl.constexpr) else value
