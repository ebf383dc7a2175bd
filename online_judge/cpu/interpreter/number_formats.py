"""Number formats that NumPy lacks: bfloat16 and the 8-bit floats, stored as bit patterns."""

from typing import Any

import numpy as np
import torch
import triton.language as tl
from numpy.typing import NDArray
from triton.runtime.interpreter import _get_np_dtype

_FP8 = {
    "fp8e4nv": torch.float8_e4m3fn,
    "fp8e5": torch.float8_e5m2,
    "fp8e4b8": torch.float8_e4m3fnuz,
    "fp8e5b16": torch.float8_e5m2fnuz,
}

Array = NDArray[Any]
numpy_type = _get_np_dtype  # dtype in which the interpreter stores a Triton type


def _to_bfloat16(values: Array) -> Array:
    """Round float32 to bfloat16 bit patterns (uint16), to nearest even; NaN stays NaN."""
    bits = np.ascontiguousarray(values, dtype=np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    return np.where(np.isnan(values), np.uint16(0x7FC0), rounded.astype(np.uint16))


def decode(data: Array, scalar: tl.dtype) -> Array:
    """Return stored values of a Triton type as ordinary NumPy numbers."""
    if scalar == tl.bfloat16:
        return (data.astype(np.uint32) << np.uint32(16)).view(np.float32)
    if scalar.name in _FP8:
        with torch._C.DisableTorchFunction():
            numbers: Array = torch.from_numpy(np.array(data)).view(_FP8[scalar.name]).float().numpy()
            return numbers
    return data


def encode(values: Array, scalar: tl.dtype) -> Array:
    """Return ordinary NumPy numbers as stored values of a Triton type."""
    if scalar == tl.bfloat16:
        return _to_bfloat16(np.asarray(values).astype(np.float32))
    if scalar.name in _FP8:
        with torch._C.DisableTorchFunction():
            floats = torch.from_numpy(np.array(values, dtype=np.float32))
            bits: Array = floats.to(_FP8[scalar.name]).view(torch.uint8).numpy()
            return bits
    stored = numpy_type(scalar)
    return values if values.dtype == stored else values.astype(stored)


def is_stored_as_bits(scalar: tl.dtype) -> bool:
    """Return True if NumPy lacks the type, so that the interpreter stores its bit patterns."""
    return scalar == tl.bfloat16 or scalar.name in _FP8
