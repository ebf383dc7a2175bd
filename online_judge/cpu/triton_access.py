"""Everything that depends on Triton's internals, for versions 3.6 to 3.9, in one place."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any

import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.compiler.compiler import ASTSource, filter_traceback, make_backend
from triton.language.extra import libdevice as libdevice_stubs
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.runtime import interpreter
from triton.runtime.jit import JITFunction, create_function_from_signature

InterpreterBuilder = interpreter.InterpreterBuilder
InterpreterOptions = interpreter.InterpreterOptions
TensorHandle = interpreter.TensorHandle
Binder = Callable[..., tuple[dict[str, Any], list[Any], dict[str, Any]]]


def cuda_target(capability: int) -> Any:
    """Triton's description of an NVIDIA GPU of that compute capability."""
    return GPUTarget("cuda", capability, 32)


def backend_for(target: Any) -> Any:
    """Triton's compiler backend for a target."""
    return make_backend(target)


def binder_for(kernel: JITFunction, backend: Any) -> Binder:
    """The function that binds and specialises a launch's arguments as Triton's launcher does."""
    binder: Binder = create_function_from_signature(kernel.signature, kernel.params, backend)
    return binder


def specialization_key(specialization: list[Any]) -> str:
    """Text that differs whenever Triton would compile anew."""

    def plain(value: Any) -> Any:
        if hasattr(value, "cache_key"):
            return value.cache_key
        if isinstance(value, list | tuple):
            return [plain(item) for item in value]
        return value

    return str(plain(specialization))


def pack_arguments(
    kernel: JITFunction,
    backend: Any,
    options: dict[str, Any],
    arguments: dict[str, Any],
    specialization: list[Any],
    leftover: dict[str, Any],
) -> tuple[Any, dict[str, Any], dict[Any, Any], dict[Any, Any]]:
    """Parsed options, signature, constants and attributes, as Triton derives them."""
    return kernel._pack_args(  # type: ignore[no-any-return]
        backend, options, arguments, specialization, leftover
    )


def lower_to_ttir(
    kernel: JITFunction,
    target: Any,
    backend: Any,
    signature: dict[str, Any],
    constants: dict[Any, Any],
    attributes: dict[Any, Any],
    options: Any,
) -> str:
    """Translate a kernel to Triton IR, verify it and run the backend's Triton IR passes."""
    source = ASTSource(kernel, signature, constants, attributes)
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    try:
        module = source.make_ir(
            target, options, backend.get_codegen_implementation(options), backend.get_module_map(), context
        )
    except Exception as error:
        filter_traceback(error)
        raise
    stages: dict[str, Callable[[Any, dict[str, Any]], Any]] = {}
    backend.add_stages(stages, options, source.language)
    return str(stages["ttir"](module, {"target": target, **vars(options)}))


def language_modules() -> tuple[Any, ...]:
    """Every namespace whose builtins a kernel can reach."""
    descriptor = getattr(tl.core, "tensor_descriptor_base", None)
    return (tl, tl.core, tl.math, tl.tensor, cuda_libdevice, *([descriptor] if descriptor else []))


def libdevice_functions() -> tuple[ModuleType, ModuleType]:
    """The portable stub module of libdevice and the CUDA module that implements it."""
    return libdevice_stubs, cuda_libdevice


def string_to_type(text: str) -> Any:
    """Triton's type of a signature entry such as ``*fp32``."""
    return tl.str_to_ty(text, None)


def numpy_type(triton_type: Any) -> Any:
    """The NumPy type in which the interpreter stores a Triton type."""
    return interpreter._get_np_dtype(triton_type)


def implicit_convert(value: Any) -> Any:
    """The interpreter's own conversion, for tuples and tensor descriptors."""
    return interpreter._implicit_cvt(value)


def pointer_handles(converted: Any) -> Iterator[Any]:
    """The handles of all pointers in what :func:`implicit_convert` gave."""
    if isinstance(converted, tuple):
        for item in converted:
            yield from pointer_handles(item)
        return
    handle = getattr(converted, "handle", None)
    handle = getattr(handle, "base", handle)  # a descriptor's is that of its base
    if isinstance(handle, TensorHandle) and handle.dtype.is_ptr():
        yield handle
