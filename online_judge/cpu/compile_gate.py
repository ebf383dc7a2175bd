"""Compiles a kernel launch with Triton's real front end, down to optimised Triton IR.

Needs no GPU and no memory: tensors may be on the CPU or on the meta device.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from triton import knobs
from triton.runtime.jit import JITFunction

from online_judge.cpu import triton_access
from online_judge.cpu.target import GpuModel


@dataclass(frozen=True)
class CompiledLaunch:
    """One specialisation of a kernel that the compiler accepted.

    ``arguments`` are this launch's values by parameter name, defaults filled in; ``signature`` gives
    each parameter's Triton type (``"*fp32"``, ``"i32"``, ``"constexpr"``) after specialisation.
    """

    kernel: JITFunction
    arguments: Mapping[str, Any]
    signature: Mapping[str, Any]
    options: Any
    ttir: str


@dataclass
class CompileGate:
    """Compiles launches for one target, each specialisation once."""

    model: GpuModel
    _binders: dict[int, tuple[JITFunction, Any]] = field(default_factory=dict)
    _compiled: dict[tuple[int, str], tuple[dict[str, Any], Any, str]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._target = triton_access.cuda_target(self.model.capability)
        self._backend = triton_access.backend_for(self._target)

    def compile(
        self, kernel: JITFunction, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> CompiledLaunch:
        """Bind, specialise and compile one launch.

        Args:
            kernel: the ``@triton.jit`` function.
            args: positional arguments of the launch.
            kwargs: keyword arguments and launch options (``num_warps`` ...), without the grid.

        Raises:
            triton.compiler.errors.CompilationError: the kernel does not compile.
            TypeError, KeyError: arguments are missing or unknown.
            RuntimeError: the compiler's passes reject the kernel's IR.
        """
        options = dict(kwargs)
        options["debug"] = bool(options.get("debug") or kernel.debug or knobs.runtime.debug)
        arguments, specialization, leftover = self._bind(kernel, args, options)
        key = (id(kernel), f"{kernel.cache_key}{triton_access.specialization_key(specialization)}{leftover}")
        if key not in self._compiled:
            parsed, signature, constants, attributes = triton_access.pack_arguments(
                kernel, self._backend, options, arguments, specialization, leftover
            )
            ttir = triton_access.lower_to_ttir(
                kernel, self._target, self._backend, signature, constants, attributes, parsed
            )
            self._compiled[key] = (signature, parsed, ttir)
        signature, parsed, ttir = self._compiled[key]
        return CompiledLaunch(kernel, arguments, signature, parsed, ttir)

    def _bind(
        self, kernel: JITFunction, args: tuple[Any, ...], options: Mapping[str, Any]
    ) -> tuple[dict[str, Any], list[Any], dict[str, Any]]:
        if id(kernel) not in self._binders:
            self._binders[id(kernel)] = (kernel, triton_access.binder_for(kernel, self._backend))
        return self._binders[id(kernel)][1](*args, **options)  # type: ignore[no-any-return]
