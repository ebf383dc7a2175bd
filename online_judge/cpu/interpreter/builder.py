"""Triton's interpreter builder, completed: bfloat16 arithmetic, libdevice, fast erf, checked memory."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal

import numpy as np
import triton.language as tl
from triton.runtime.interpreter import InterpreterBuilder, InterpreterOptions
from triton.runtime.interpreter import TensorHandle as Handle

from online_judge.cpu.errors import DeviceAssertionError, NotCheckedError, not_checked
from online_judge.cpu.interpreter import libdevice
from online_judge.cpu.interpreter.memory import LaunchMemory
from online_judge.cpu.interpreter.number_formats import Array, decode, encode, is_stored_as_bits, numpy_type

_BITWISE = (np.bitwise_and, np.bitwise_or, np.bitwise_xor)
_PRECISIONS = ("ieee", "tf32", "tf32x3", "bf16x3", "bf16x6")


class CpuBuilder(InterpreterBuilder):  # type: ignore[misc]
    """Executes Triton operations on NumPy arrays."""

    def __init__(self) -> None:
        super().__init__()
        self.options = replace(
            InterpreterOptions(), sanitize_overflow=False, allowed_dot_input_precisions=_PRECISIONS
        )
        self.memory = LaunchMemory(())  # of the launch in progress

    def set_debug(self, debug: bool) -> None:
        """Check the kernel's assertions if the launch option ``debug`` is set."""
        self.options = replace(self.options, debug=debug)

    def __getattr__(self, name: str) -> Any:
        if name.startswith(("create_", "get_")):
            return not_checked(f"Triton's interpreter has no {name}")
        raise AttributeError(name)

    # memory

    def create_masked_load(
        self, ptrs: Handle, mask: Handle, other: Handle, *policy: object, **named: object
    ) -> Handle:
        mask = self._mask(mask)
        ptrs = self._located(ptrs, mask.data, "load")
        return super().create_masked_load(ptrs, mask, other, *policy, **named)

    def create_masked_store(
        self, ptrs: Handle, value: Handle, mask: Handle, *policy: object, **named: object
    ) -> Handle:
        mask = self._mask(mask)
        ptrs = self._located(ptrs, mask.data, "store")
        return super().create_masked_store(ptrs, value, mask, *policy, **named)

    def create_atomic_cas(self, ptr: Handle, cmp: Handle, val: Handle, *policy: object) -> Handle:
        return super().create_atomic_cas(self._located(ptr, True, "atomic"), cmp, val, *policy)

    def create_atomic_rmw(
        self, operation: object, ptr: Handle, val: Handle, mask: Handle, *policy: object
    ) -> Handle:
        mask = self._mask(mask)
        ptr = self._located(ptr, mask.data, "atomic")
        return super().create_atomic_rmw(operation, ptr, val, mask, *policy)

    def create_ptr_to_int(self, src: Handle, dst_type: tl.dtype) -> Handle:
        """Return a pointer's bits: the machine's address, which is the same in all launches."""
        self.memory.foreign_pointers = True  # such integers can give distances between tensors
        actual = Handle(self.memory.actual(src.data), src.dtype)
        return self.create_bitcast(actual, dst_type)

    def create_int_to_ptr(self, src: Handle, dst_type: tl.dtype) -> Handle:
        """Reinterpret an integer as a pointer; after this, unknown addresses prove nothing."""
        self.memory.foreign_pointers = True
        return self.create_bitcast(src, dst_type)

    def _located(self, pointers: Handle, mask: Array | Literal[True], action: str) -> Handle:
        """Return the machine's pointers for an access by the kernel's; raise if one is out of bounds."""
        itemsize = max(1, pointers.get_element_ty().primitive_bitwidth // 8)
        return Handle(self.memory.locate(pointers.data, mask, itemsize, action), pointers.dtype)

    def _mask(self, mask: Handle | Array) -> Handle:
        is_handle = hasattr(mask, "dtype") and hasattr(mask, "get_element_ty")
        return mask if is_handle else Handle(mask, tl.int1)

    # arithmetic

    def get_bf16(self, value: float) -> Handle:
        return Handle(encode(np.array([value], dtype=np.float32), tl.bfloat16), tl.bfloat16)

    def binary_op(self, lhs: Handle, rhs: Handle, op: Callable[..., Array]) -> Handle:
        scalar = lhs.dtype.scalar
        if is_stored_as_bits(scalar) and op not in _BITWISE:
            output = op(decode(lhs.data, scalar), decode(rhs.data, rhs.dtype.scalar))
        elif lhs.data.dtype == np.bool_ and op in (np.add, np.subtract, np.multiply):
            output = (op(lhs.data.astype(np.int8), rhs.data.astype(np.int8)) & 1).astype(bool)
        else:
            output = op(lhs.data, rhs.data)
        if output.dtype == np.bool_:
            return Handle(output, tl.int1)
        return Handle(encode(output, scalar), scalar)

    def ternary_op(self, lhs: Handle, rhs: Handle, other: Handle, op: Callable[..., Array]) -> Handle:
        scalar = other.dtype.scalar
        if op is np.where or not is_stored_as_bits(scalar):
            return Handle(_fit(op(lhs.data, rhs.data, other.data), scalar), scalar)
        values = [decode(handle.data, handle.dtype.scalar) for handle in (lhs, rhs, other)]
        return Handle(encode(op(*values), scalar), scalar)

    def unary_op(self, arg: Handle, op: Callable[..., Array]) -> Handle:
        scalar = arg.dtype.scalar
        return Handle(encode(op(decode(arg.data, scalar)), scalar), scalar)

    def create_minnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        """Minimum that ignores NaN."""
        return self.binary_op(lhs, rhs, np.fmin)

    def create_maxnumf(self, lhs: Handle, rhs: Handle) -> Handle:
        """Maximum that ignores NaN."""
        return self.binary_op(lhs, rhs, np.fmax)

    def create_fma(self, x: Handle, y: Handle, z: Handle) -> Handle:
        """Fused multiply-add, rounded once."""
        scalar = z.dtype.scalar
        a, b, c = (decode(h.data, h.dtype.scalar) for h in (x, y, z))
        return Handle(encode(np.asarray(a.astype(np.float64) * b + c), scalar), scalar)

    def create_erf(self, arg: Handle) -> Handle:
        return self.unary_op(arg, libdevice.erf)

    def create_rsqrt(self, arg: Handle) -> Handle:
        return self.unary_op(arg, lambda x: 1 / np.sqrt(x))

    def create_dot(self, a: Handle, b: Handle, d: Handle, *precision: object) -> Handle:
        """Matrix product plus accumulator, in the accumulator's type."""
        stored, scalar = d.data.dtype, d.dtype.scalar
        wide = np.float32 if stored == np.float16 or is_stored_as_bits(scalar) else stored
        left = decode(a.data, a.dtype.scalar).astype(wide, copy=False)
        right = decode(b.data, b.dtype.scalar).astype(wide, copy=False)
        return Handle(encode(np.matmul(left, right) + decode(d.data, scalar), scalar), scalar)

    # conversions

    def cast_impl(self, src: Handle, dst_type: tl.dtype) -> Handle:
        """Convert values, rounding to nearest even."""
        scalar = dst_type.scalar
        values = decode(src.data, src.dtype.scalar)
        if scalar == tl.int1:
            return Handle(values != 0, scalar)
        return Handle(encode(values, scalar), scalar)

    def create_fp_to_fp(self, src: Handle, dst_type: tl.dtype, rounding_mode: object = None) -> Handle:
        return self.cast_impl(src, dst_type)

    def create_bitcast(self, src: Handle, dst_type: tl.dtype) -> Handle:
        data = np.ascontiguousarray(src.data).reshape(src.data.shape)
        return Handle(data.view(numpy_type(dst_type)), dst_type.scalar)

    def create_splat(self, ret_ty: tl.block_type, arg: Handle) -> Handle:
        data = np.full(ret_ty.shape, arg.data.reshape(-1)[0], dtype=arg.data.dtype)
        return Handle(data, arg.dtype.scalar)

    # operations that the interpreter lacks or treats differently

    def create_extern_elementwise(
        self, library: str, path: str, symbol: str, arguments: list[Handle], ret_type: tl.dtype, is_pure: bool
    ) -> Handle:
        function = libdevice.equivalent(symbol)
        if function is None:
            raise NotCheckedError(f"libdevice function {symbol} has no equivalent without a GPU")
        stored = numpy_type(ret_type.scalar)
        result = np.asarray(function(*(argument.data for argument in arguments)))
        shaped = result.view(stored) if libdevice.is_bit_cast(symbol) else result.astype(stored)
        return Handle(shaped, ret_type.scalar)

    def create_assert(self, condition: Handle, message: str) -> None:
        if not condition.data.all():
            raise DeviceAssertionError(f"device assertion failed: {message}")

    def create_assume(self, condition: Handle) -> None:
        """Raise if an assumption does not hold: compiled code would be undefined."""
        if not condition.data.all():
            raise DeviceAssertionError("tl.assume does not hold")

    create_inline_asm = not_checked("inline assembly cannot run without a GPU")


def _fit(output: Array, scalar: tl.dtype) -> Array:
    fits = isinstance(scalar, tl.pointer_type) or output.dtype.itemsize <= numpy_type(scalar).itemsize
    return output if fits else output.astype(numpy_type(scalar))
