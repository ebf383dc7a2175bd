"""Find functions of torch, Triton, Python or the judge that a candidate has replaced in its process."""

from __future__ import annotations

import builtins
import contextlib
import gc
import importlib
import os
import signal
import sys
import threading
import types
from collections.abc import Iterator
from typing import Any

import torch
import torch.library
from torch.utils._device import DeviceContext

_JUDGE = ("online_judge", "adaexplore")
_WATCHED = (
    # code that results and times pass through
    "torch", "torch.Tensor", "torch._C", "torch._C.TensorBase", "torch._C._nn", "torch._C._VariableFunctions",
    "torch.Storage", "torch.UntypedStorage", "torch.storage.UntypedStorage", "torch.Generator",
    "torch.nn.Module", "torch.nn.Parameter", "torch.nn.functional", "torch.overrides", "torch.testing",
    "torch.cuda", "torch.cuda.Event", "torch.cuda.Stream", "torch.cuda.streams", "torch.cuda.memory",
    "torch.autograd", "torch.autograd.graph", "torch.autograd.function", "torch.autograd.function.Function",
    "torch.cuda.graphs", "torch.cuda.graphs.CUDAGraph", "torch.cuda.random", "torch.profiler", "torch.linalg",
    "torch.random", "torch.backends.cuda", "torch.backends.cudnn", "torch.utils._python_dispatch",
    "triton", "triton.testing", "triton.runtime.driver", "triton.runtime.jit", "triton.compiler.compiler",
    "triton.runtime.jit.JITFunction", "triton.runtime.jit.KernelInterface", "triton.runtime.autotuner",
    "triton.runtime.autotuner.Autotuner", "triton.runtime.autotuner.Heuristics",
    "triton.compiler.compiler.CompiledKernel", "triton.backends.nvidia.driver",
    "triton.backends.nvidia.driver.CudaLauncher", "triton.backends.nvidia.driver.CudaDriver",
    # the judge's own code in this process
    "builtins", "time", "os", "gc", "sys", "threading", "threading.Thread", "statistics", "contextlib",
    "functools", "json", "json.encoder.JSONEncoder", "json.decoder.JSONDecoder", "pickle", "struct",
    "socket", "socket.socket", "select", "mmap", "ctypes", "random", "math", "hashlib",
    "numpy", "numpy.random", "importlib", "importlib.util",
)  # fmt: skip
_WATCHED_TYPES = (
    *(types.FunctionType, types.BuiltinFunctionType, types.ModuleType, types.MethodDescriptorType),
    *(types.ClassMethodDescriptorType, types.WrapperDescriptorType, types.GetSetDescriptorType),
    *(types.MemberDescriptorType, type, property, staticmethod, classmethod),
)
_HOOKS = tuple(f"_global_{way}_{when}" for way in ("forward", "backward") for when in ("hooks", "pre_hooks"))
_MISSING = object()
_TORCH = f"{os.path.dirname(torch.__file__)}/"


class _Namespace:
    """The content of a module or class: by name the value and, for a function, its code."""

    def __init__(self, label: str, owner: object, *, everything: bool = False) -> None:
        self._label, self._owner = label, owner
        self._values = {
            name: value
            for name, value in list(vars(owner).items())
            if everything or isinstance(value, _WATCHED_TYPES) or callable(value)
        }
        self._bodies = {name: _body(value) for name, value in self._values.items()}

    def changes(self) -> Iterator[str]:
        now = vars(self._owner)
        for name, value in self._values.items():
            current = now.get(name, _MISSING)
            same = current is value and _body(current) == self._bodies[name]
            if not same and not _wraps(current, value):
                yield f"{self._label}.{name}"
        for name in list(now):
            if name not in self._values and self._shadows(name, now[name]):
                yield f"{self._label}.{name}"

    def _shadows(self, name: str, value: object) -> bool:
        """Return True if a new name hides an existing function."""
        if not callable(value):
            return False
        if isinstance(self._owner, type):
            return any(name in vars(base) for base in self._owner.__mro__[1:])
        return self._owner is not builtins and hasattr(builtins, name) and not name.startswith("__")


class Watchdog:
    """Records functions and hooks of this process when it is made; reports changes since then.

    Make it after the judge's own patches and before the import of the candidate. It compares identities: a
    function that the candidate defines in its own module under a known name, or a module that it imports, is
    no change.
    """

    def __init__(self) -> None:
        self._namespaces = [
            _Namespace(label, owner)
            for label in _WATCHED
            if (owner := _named(label)) is not None and hasattr(owner, "__dict__")
        ]
        for name, module in list(sys.modules.items()):
            if name.partition(".")[0] in _JUDGE and isinstance(module, types.ModuleType):
                self._namespaces.append(_Namespace(name, module, everything=True))
                for label, value in vars(module).items():
                    if isinstance(value, type) and value.__module__ == name:
                        self._namespaces.append(_Namespace(f"{name}.{label}", value))
        self._modules = dict(sys.modules)
        self._states = _states()

    def changes(self) -> list[str]:
        """Return the sorted names of replaced functions and hooks."""
        found = {change for namespace in self._namespaces for change in namespace.changes()}
        for name, module in self._modules.items():
            if sys.modules.get(name, module) is not module:
                found.add(f"sys.modules[{name!r}]")
        now = _states()
        found.update(label for label, state in self._states.items() if now[label] != state)
        return sorted(found)


def _named(label: str) -> object:
    """Return the module or class called ``label``; None if this version has none."""
    if label in sys.modules:
        return sys.modules[label]
    owner, _, name = label.rpartition(".")
    if owner in sys.modules and name in vars(sys.modules[owner]):
        return vars(sys.modules[owner])[name]
    with contextlib.suppress(ImportError):
        return importlib.import_module(label)
    return None


def _body(value: Any) -> tuple[object, ...]:
    """Return a Python function's code, which can be exchanged while the function stays the same object."""
    if type(value) in (staticmethod, classmethod):
        value = value.__func__
    if type(value) is property:
        return (value.fget, value.fset, value.fdel)
    if type(value) is not types.FunctionType:
        return ()
    return (id(value.__code__), id(value.__defaults__), id(value.__kwdefaults__))


def _wraps(current: object, original: object, depth: int = 3) -> bool:
    """Return True if torch wrapped a function itself, as ``torch.compile`` does."""
    if type(current) is not types.FunctionType or not current.__code__.co_filename.startswith(_TORCH):
        return False
    inner = [getattr(current, "__wrapped__", None)]
    for cell in current.__closure__ or ():
        with contextlib.suppress(ValueError):  # an empty cell
            inner.append(cell.cell_contents)
    if any(part is original for part in inner):
        return True
    return depth > 0 and any(_wraps(part, original, depth - 1) for part in inner)


def _states() -> dict[str, object]:
    """Return other hooks that intercept calls."""
    states: dict[str, object] = {
        "sys.settrace": id(sys.gettrace()) if sys.gettrace() else None,
        "sys.setprofile": id(sys.getprofile()) if sys.getprofile() else None,
        "threading.settrace": threading.gettrace(),
        "threading.setprofile": threading.getprofile(),
        "gc.callbacks": [id(callback) for callback in gc.callbacks],
        "signal handlers": [signal.getsignal(number) for number in sorted(signal.valid_signals())],
        "torch function modes": _function_modes(),
        "torch dispatch modes": torch._C._len_torch_dispatch_stack(),
        "implementations of aten operations": _overridden_operations(),
    }
    for hooks in _HOOKS:
        states[f"torch.nn.modules.module.{hooks}"] = len(getattr(torch.nn.modules.module, hooks, ()))
    if monitoring := getattr(sys, "monitoring", None):
        states["sys.monitoring"] = [monitoring.get_tool(index) for index in range(6)]
    return states


def _function_modes() -> list[int]:
    """Return active modes for torch's functions, except the default device's, which is a global flag."""
    modes = [torch._C._get_function_stack_at(i) for i in range(torch._C._len_torch_function_stack())]
    return [id(mode) for mode in modes if type(mode) is not DeviceContext]


def _overridden_operations() -> frozenset[str]:
    """Return operations of torch that Python code reimplements for devices with data."""
    computing = ("/CPU", "/CUDA", "/AutogradCPU", "/AutogradCUDA", "/CompositeImplicitAutograd")
    found: set[str] = getattr(torch.library, "_impls", set())
    return frozenset(key for key in found if key.startswith("aten/") and key.endswith(computing))
