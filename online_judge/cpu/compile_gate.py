"""Compile a kernel launch with Triton's real front end, down to optimised Triton IR.

This needs no GPU and no memory: tensors may be on the CPU or on the meta device. It uses internals of Triton
3.6 to 3.9.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from triton import knobs
from triton._C.libtriton import ir
from triton.backends.compiler import Language
from triton.compiler.compiler import ASTSource, filter_traceback, make_backend
from triton.runtime.jit import JITFunction, create_function_from_signature

from online_judge.cpu.target import GpuModel

_Stages = dict[str, Callable[[Any, dict[str, Any]], Any]]


@dataclass(frozen=True)
class CompiledLaunch:
    """One specialisation of a kernel that the compiler accepted.

    ``arguments`` are this launch's values by parameter name, defaults filled in; ``signature`` gives
    each parameter's Triton type (``"*fp32"``, ``"i32"``, ``"constexpr"``) after specialisation.
    """

    kernel: JITFunction
    arguments: Mapping[str, object]
    signature: Mapping[str, object]
    options: Any
    ttir: str


class CompileGate:
    """Compiles launches for one target, each specialisation once."""

    def __init__(self, model: GpuModel) -> None:
        self._target = model.target
        self._backend = make_backend(model.target)
        # by the kernel's id; keeping the kernel keeps its id unique
        self._binders: dict[int, tuple[JITFunction, Callable[..., Any]]] = {}
        self._compiled: dict[tuple[int, str], tuple[dict[str, object], object, str]] = {}

    def compile(
        self, kernel: JITFunction, args: tuple[object, ...], kwargs: Mapping[str, object]
    ) -> CompiledLaunch:
        """Bind, specialise and compile one launch; ``kwargs`` includes launch options, but no grid.

        Raises what Triton raises for wrong arguments and kernels.
        """
        options = dict(kwargs)
        options["debug"] = bool(options.get("debug") or kernel.debug or knobs.runtime.debug)
        if id(kernel) not in self._binders:
            binder = create_function_from_signature(kernel.signature, kernel.params, self._backend)
            self._binders[id(kernel)] = (kernel, binder)
        arguments, specialization, leftover = self._binders[id(kernel)][1](*args, **options)
        key = (id(kernel), f"{kernel.cache_key}{_plain(specialization)}{leftover}")
        if key not in self._compiled:
            parsed, signature, constants, attributes = kernel._pack_args(
                self._backend, options, arguments, specialization, leftover
            )
            ttir = self._lower(ASTSource(kernel, signature, constants, attributes), parsed)
            self._compiled[key] = (signature, parsed, ttir)
        signature, parsed, ttir = self._compiled[key]
        return CompiledLaunch(kernel, arguments, signature, parsed, ttir)

    def ptx(self, most_chars: int) -> dict[str, str]:
        """Return the PTX of the compiled kernels by name; ``name-2`` is a second specialisation.

        PTX beyond ``most_chars`` in all is left out. Raises what Triton raises.
        """
        found: dict[str, str] = {}
        counts: Counter[str] = Counter()
        for (kernel_id, _), (_, options, ttir) in self._compiled.items():
            name = self._binders[kernel_id][0].__name__
            counts[name] += 1
            text = self._assemble(ttir, options)
            most_chars -= len(text)
            if most_chars < 0:
                break
            found[name if counts[name] == 1 else f"{name}-{counts[name]}"] = text
        return found

    def _assemble(self, ttir: str, options: Any) -> str:
        """Run the backend's later stages on a kernel's Triton IR."""
        context, stages = self._pipeline(options)
        with tempfile.NamedTemporaryFile("w", suffix=".ttir", encoding="utf-8") as file:
            file.write(ttir)
            file.flush()
            module = ir.parse_mlir_module(file.name, context)
        module.context = context
        metadata = {"target": self._target, **vars(options)}
        for stage in ("ttgir", "llir", "ptx"):
            module = stages[stage](module, metadata)
        return str(module)

    def _lower(self, source: ASTSource, options: object) -> str:
        """Translate a kernel to Triton IR, verify it and run the backend's Triton IR passes."""
        target, backend = self._target, self._backend
        context, stages = self._pipeline(options)
        try:
            codegen = backend.get_codegen_implementation(options)
            module = source.make_ir(target, options, codegen, backend.get_module_map(), context)
        except Exception as error:
            filter_traceback(error)
            raise
        return str(stages["ttir"](module, {"target": target, **vars(options)}))

    def _pipeline(self, options: object) -> tuple[ir.context, _Stages]:
        """Return a context with all dialects, and the backend's stages."""
        context = ir.context()
        ir.load_dialects(context)
        self._backend.load_dialects(context)
        stages: _Stages = {}
        self._backend.add_stages(stages, options, Language.TRITON)
        return context, stages


def _plain(value: object) -> object:
    """Return a form of a specialisation whose text differs whenever Triton would compile anew."""
    if hasattr(value, "cache_key"):
        return value.cache_key
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value
