"""Execute compiled launches with Triton's interpreter on CPU memory."""

import inspect
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import partialmethod, reduce
from typing import Any, SupportsInt

import numpy as np
import torch
import triton.language as tl
from numpy.typing import NDArray
from triton.language.extra import libdevice as libdevice_stubs
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.semantic import TritonSemantic
from triton.runtime.interpreter import TensorHandle
from triton.runtime.interpreter import _implicit_cvt as implicit_convert
from triton.runtime.jit import JITFunction

from online_judge.cpu.compile_gate import CompiledLaunch
from online_judge.cpu.errors import DeviceAssertionError, IllegalAccessError, NotCheckedError
from online_judge.cpu.interpreter import reductions
from online_judge.cpu.interpreter.builder import CpuBuilder
from online_judge.cpu.interpreter.memory import LaunchMemory
from online_judge.cpu.interpreter.number_formats import encode
from online_judge.cpu.interpreter.rewriting import SUPPORT, rewrite
from online_judge.cpu.patching import Patches

Grid = tuple[int, int, int]
# all namespaces whose builtins a kernel can use
_LANGUAGE = (tl, tl.core, tl.math, tl.tensor, cuda_libdevice, tl.core.tensor_descriptor_base)


class Interpreter:
    """Runs kernels program by program; each simulation has its own."""

    def __init__(self) -> None:
        self._builder = CpuBuilder()
        self._semantic = TritonSemantic(self._builder)
        self._functions: dict[int, tuple[JITFunction, Callable[..., object]]] = {}
        self._support = _Support(self._semantic)
        self._language, self._by_identity = self._language_replacements()
        self._running = False

    def run(self, launch: CompiledLaunch, grid: Grid) -> None:
        """Execute a launch over its grid; raises the errors of :mod:`online_judge.cpu.errors`."""
        self._builder.memory = LaunchMemory(launch_tensors(launch.arguments.values()))
        self._builder.set_grid_dim(*grid)
        self._builder.set_debug(bool(launch.options.debug))
        with self._patched_language(), np.errstate(all="ignore"), torch._C.DisableTorchFunction():
            arguments = {
                name: self._argument(value, launch.signature[name])
                for name, value in launch.arguments.items()
            }
            function = self._function(launch.kernel)
            programs = ((x, y, z) for x in range(grid[0]) for y in range(grid[1]) for z in range(grid[2]))
            try:
                for program in programs:
                    self._builder.set_grid_idx(*program)
                    function(**arguments)
            except (IllegalAccessError, NotCheckedError, DeviceAssertionError, MemoryError):
                raise
            except Exception as error:
                failed = f"Triton's interpreter cannot run {launch.kernel.__name__}"
                raise NotCheckedError(f"{failed}: {type(error).__name__}: {error}") from error

    def call(self, function: JITFunction, args: tuple[object, ...], kwargs: Mapping[str, object]) -> object:
        """Execute a ``@triton.jit`` function that a running kernel calls; RuntimeError if none runs."""
        if not self._running:
            raise RuntimeError("Cannot call @triton.jit'd outside of the scope of a kernel")
        return self._function(function)(*args, **kwargs)

    def _function(self, kernel: JITFunction) -> Callable[..., object]:
        if id(kernel) not in self._functions:
            self._functions[id(kernel)] = (kernel, rewrite(kernel, self._namespace(kernel)))
        return self._functions[id(kernel)][1]

    def _namespace(self, kernel: JITFunction) -> dict[str, object]:
        names = {**kernel.fn.__globals__, **inspect.getclosurevars(kernel.fn).nonlocals}
        replaced = {
            name: self._by_identity[id(value)]
            for name, value in names.items()
            if id(value) in self._by_identity
        }
        python = {
            "min": lambda *values, **named: _extreme(min, tl.minimum, values, named),
            "max": lambda *values, **named: _extreme(max, tl.maximum, values, named),
        }
        return {**python, **names, **replaced, SUPPORT: self._support}

    def _argument(self, value: Any, signature: object) -> object:
        if signature == "constexpr":
            return reductions.plain(value)
        if not isinstance(signature, str) or signature.startswith(("tensordesc", "nvTmaDesc")):
            converted = implicit_convert(value)
            for handle in _pointer_handles(converted):
                handle.data = self._placed(int(handle.data[0]))
            return converted
        scalar = tl.str_to_ty(signature, None)
        is_pointer = hasattr(value, "data_ptr")
        data = self._placed(value.data_ptr()) if is_pointer else encode(np.array([value]), scalar)
        return tl.tensor(TensorHandle(data, scalar), scalar)

    def _placed(self, pointer: int) -> NDArray[np.uint64]:
        """Return the kernel's address for the machine's, as the interpreter stores it."""
        return np.array([self._builder.memory.place(pointer)], dtype=np.uint64)

    @contextmanager
    def _patched_language(self) -> Iterator[None]:
        if self._running:
            raise NotCheckedError("a kernel that launches kernels cannot run without a GPU")
        self._running = True
        try:
            with Patches() as patches:
                for owner, name, value in self._language:
                    patches.set(owner, name, value)
                yield
        finally:
            self._running = False

    def _language_replacements(self) -> tuple[list[tuple[object, str, object]], dict[int, object]]:
        """Return replacements of the language's functions in a running kernel, by place and by identity."""
        replacements: list[tuple[object, str, object]] = []
        for module in _LANGUAGE:
            for name, member in inspect.getmembers(module, tl.core.is_builtin):
                replacements.append((module, name, self._eager(member)))
            if module is not tl.tensor:
                special = self._support.language.items()
                replacements += [(module, name, value) for name, value in special if hasattr(module, name)]
        for name, member in inspect.getmembers(tl.tensor, lambda member: isinstance(member, JITFunction)):
            replacements.append((tl.tensor, name, partialmethod(member)))
        for name, member in inspect.getmembers(cuda_libdevice, tl.core.is_builtin):
            if hasattr(libdevice_stubs, name):
                replacements.append((libdevice_stubs, name, self._eager(member)))
        replacements += [(tl.tensor, name, value) for name, value in self._support.tensor.items()]
        replacements.append((tl.dtype, "to_ir", lambda dtype, builder: dtype))
        by_identity = {
            id(vars(owner)[name]): value
            for owner, name, value in replacements
            if inspect.ismodule(owner) and name in vars(owner)
        }
        return replacements, by_identity

    def _eager(self, builtin: Callable[..., object]) -> Callable[..., object]:
        def call(*args: object, **kwargs: object) -> object:
            kwargs["_semantic"] = self._semantic
            return builtin(*args, **kwargs)

        return call


class _Support:
    """The compiler's meaning of Python constructs, on interpreter tensors."""

    def __init__(self, semantic: TritonSemantic) -> None:
        self._semantic = semantic
        self.language: dict[str, object] = {
            **dict.fromkeys(("range", "static_range"), _loop_range),
            "static_assert": _static_assert,
            "static_print": print,
            **dict.fromkeys(
                ("multiple_of", "max_contiguous", "max_constancy"), lambda value, *_, **__: value
            ),
            "reduce": reductions.reduce,
            "associative_scan": reductions.associative_scan,
            "debug_barrier": lambda *_, **__: None,
        }
        self.tensor: dict[str, object] = {
            "__index__": lambda tensor: int(tensor.handle.data.reshape(-1)[0]),
            "__bool__": lambda tensor: bool(tensor.handle.data.all()),
            "__repr__": lambda tensor: repr(tensor.handle.data),
            "__str__": lambda tensor: str(tensor.handle.data),
            "T": property(lambda tensor: semantic.permute(tensor, (1, 0))),
        }

    def assigned(self, value: object) -> object:
        """Turn a number assigned to a variable into a tensor."""
        value = reductions.plain(value)
        return self._semantic.to_tensor(value) if isinstance(value, bool | int | float) else value

    def both(self, left: object, right: Callable[[], object]) -> object:
        """``and``: element-wise on tensors, short-circuit on compile-time values."""
        if not isinstance(left, tl.tensor):
            return left and right()
        value = right()
        return self._semantic.logical_and(left, value) if isinstance(value, tl.tensor) else value and left

    def either(self, left: object, right: Callable[[], object]) -> object:
        """``or``: element-wise on tensors, short-circuit on compile-time values."""
        if not isinstance(left, tl.tensor):
            return left or right()
        value = right()
        return self._semantic.logical_or(left, value) if isinstance(value, tl.tensor) else value or left

    def negated(self, value: object) -> object:
        """``not``: element-wise on tensors."""
        return self._semantic.not_(value) if isinstance(value, tl.tensor) else not value

    def value_of(self, owner: object) -> object:
        """``.value``, which compile-time numbers do not have here."""
        return owner.value if hasattr(owner, "value") else owner


def _extreme(
    builtin: Callable[..., object],
    elementwise: Callable[..., object],
    values: tuple[object, ...],
    named: dict[str, object],
) -> object:
    """Python's ``min`` or ``max`` inside a kernel."""
    if not any(isinstance(value, tl.tensor) for value in values):
        return builtin(*map(reductions.plain, values))
    return reduce(lambda left, right: elementwise(left, right, **named), values)


def _loop_range(
    arg1: SupportsInt, arg2: SupportsInt | None = None, step: SupportsInt | None = None, **_: object
) -> range:
    start, end = (0, arg1) if arg2 is None else (arg1, arg2)
    return range(int(start), int(end), 1 if step is None else int(step))


def _static_assert(condition: object, message: object = "") -> None:
    if not condition:
        raise AssertionError(message)


def _pointer_handles(converted: object) -> Iterator[TensorHandle]:
    """Return the handles of all pointers in a converted tuple or descriptor."""
    if isinstance(converted, tuple):
        for item in converted:
            yield from _pointer_handles(item)
        return
    handle = getattr(converted, "handle", None)
    handle = getattr(handle, "base", handle)  # a descriptor's is that of its base
    if isinstance(handle, TensorHandle) and handle.dtype.is_ptr():
        yield handle


def launch_tensors(values: Iterable[object]) -> Iterator[torch.Tensor]:
    """Return the tensors among a launch's arguments, those in tuples and descriptors included."""
    for value in values:
        if isinstance(value, tuple | list):
            yield from launch_tensors(value)
        elif isinstance(value, torch.Tensor):
            yield value
        elif isinstance(base := getattr(value, "base", None), torch.Tensor):
            yield base
