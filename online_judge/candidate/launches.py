"""Which of the candidate's own kernels a call launches, and what the call gives without them."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import torch
import torch.cuda.graphs
from torch.overrides import TorchFunctionMode
from triton.backends.nvidia.driver import CudaLauncher
from triton.compiler.compiler import CompiledKernel
from triton.runtime.jit import JITFunction

from online_judge.common import provenance
from online_judge.protocol.kernels import MAX_NAME, MAX_NAMED, Launches, Resources, Unseen

_TRITON_LIBRARIES = ("cuda_utils", "__triton_launcher")
_SYSTEM_FOLDERS = ("/usr/", "/lib", "/opt/", "/nix/")
_GPU_PACKAGES = ("cupy", "numba.cuda", "pycuda", "tilelang", "cutlass", "cuda.bindings.driver")
_UNINITIALISED = {
    torch.empty,
    torch.empty_like,
    torch.empty_permuted,
    torch.empty_strided,
    torch.Tensor.new_empty,
    torch.Tensor.new_empty_strided,
}


@dataclass(frozen=True)
class _Kernel:
    name: str
    own: bool
    resources: Resources | None = None


class LaunchMeter:
    """Counts, or leaves out, launches of the candidate's own kernels while a block runs.

    Nothing is installed outside of the blocks, so timed calls are as fast as without it. Launches of
    kernels that were compiled or wrapped in any way count, those of kernels that torch generates do not.
    """

    def __init__(self, *, cuda: bool) -> None:
        """Be made before the candidate is loaded, so that its libraries can be told from others."""
        self._cuda = cuda
        self._libraries = _libraries()
        self._packages = {name for name in _GPU_PACKAGES if name in sys.modules}
        self._kernels: dict[int, _Kernel] = {}
        self._counts: Counter[str] = Counter()
        self._resources: dict[str, Resources] = {}
        self._replays = 0

    @contextlib.contextmanager
    def counting(self) -> Iterator[None]:
        """Run the block as it is and count; :meth:`launches` then tells."""
        with self._watching(skip=False):
            yield

    @contextlib.contextmanager
    def skipping(self) -> Iterator[None]:
        """Run the block without the candidate's own kernels, fresh memory full of NaN.

        If the outputs are right all the same, the kernels are decoys. Inputs must differ from those of
        the call before, or buffers that the candidate keeps still hold the right outputs. Kernels must
        have been tuned before: under this an autotuner would choose blindly.
        """
        poison = contextlib.nullcontext() if _compiled_by_torch() else _PoisonedMemory()
        with self._watching(skip=True), poison:
            yield

    def launches(self) -> Launches:
        """What the last block launched (or would have)."""
        unseen: list[Unseen] = []
        if self._extended():
            unseen.append("extension")
        if _compiled_by_torch():
            unseen.append("compile")
        if self._replays:
            unseen.append("graph")
        return Launches(
            counts=dict(self._counts.most_common(MAX_NAMED)),
            total=self._counts.total(),
            defined=len(_own_functions()),
            unseen=tuple(unseen),
        )

    def resources(self) -> dict[str, Resources]:
        """What the own kernels have that the last block launched, by name; of several, the last launched."""
        return dict(self._resources)

    def kernel_names(self) -> list[str]:
        """Names by which a profiler may know the candidate's kernels."""
        named = {function.__name__ for function in _own_functions()}
        return sorted(named.union(key.partition("[")[0] for key in self._counts))

    @contextlib.contextmanager
    def _watching(self, *, skip: bool) -> Iterator[None]:
        self._counts.clear()
        self._resources.clear()
        self._kernels.clear()
        self._replays = 0
        with contextlib.ExitStack() as stack:
            if self._cuda:
                launch = self._on_cuda(CudaLauncher.__call__, skip)
                stack.enter_context(_replaced(CudaLauncher, "__call__", launch))
                graph = torch.cuda.graphs.CUDAGraph
                stack.enter_context(_replaced(graph, "replay", self._replay(graph.replay, skip)))
            else:
                from online_judge.cpu.launching import Launcher

                carry_out = self._simulated(Launcher.carry_out, skip)
                stack.enter_context(_replaced(Launcher, "carry_out", carry_out))
            yield

    def _on_cuda(self, original: Callable[..., Any], skip: bool) -> Callable[..., Any]:
        """Every launch of Triton's, however it began, ends in this one call of the launcher."""

        def launch(launcher: Any, x: int, y: int, z: int, stream: int, function: int, *rest: Any) -> Any:
            kernel = self._kernel(function)
            if self._note(kernel, (x, y, z)) and skip:
                return None
            return original(launcher, x, y, z, stream, function, *rest)

        return launch

    def _simulated(self, original: Callable[..., None], skip: bool) -> Callable[..., None]:
        def carry_out(launcher: Any, compiled: Any, grid: tuple[int, int, int]) -> None:
            kernel = _Kernel(compiled.kernel.__name__, _is_own(compiled.kernel))
            if not (self._note(kernel, grid) and skip):
                original(launcher, compiled, grid)

        return carry_out

    def _replay(self, original: Callable[..., Any], skip: bool) -> Callable[..., Any]:
        def replay(graph: Any) -> Any:
            self._replays += 1
            return None if skip else original(graph)

        return replay

    def _note(self, kernel: _Kernel, grid: tuple[int, int, int]) -> bool:
        if kernel.own and 0 not in grid:
            self._counts[f"{kernel.name[:MAX_NAME]}[{grid[0]}, {grid[1]}, {grid[2]}]"] += 1
            self._keep_resources(kernel, grid[0] * grid[1] * grid[2])
        return kernel.own

    def _keep_resources(self, kernel: _Kernel, programs: int) -> None:
        if kernel.resources is not None and len(self._resources) < MAX_NAMED:
            known = self._resources.get(kernel.name)
            most = programs if known is None else max(programs, known.programs)
            self._resources[kernel.name] = replace(kernel.resources, programs=most)

    def _kernel(self, function: int) -> _Kernel:
        """The kernel behind a function handle; looked up once for each."""
        if function not in self._kernels:
            for item in gc.get_objects():
                if issubclass(type(item), CompiledKernel) and item.function is not None:
                    source = getattr(item.src, "fn", None)
                    # one without a Python source was compiled from text, which torch never does
                    own = source is None or _is_own(source)
                    self._kernels[item.function] = _Kernel(str(item.name), own, _resources_of(item))
        return self._kernels.setdefault(function, _Kernel("unknown", True))

    def _extended(self) -> bool:
        packages = {name for name in _GPU_PACKAGES if name in sys.modules}
        return bool(packages - self._packages or _libraries() - self._libraries)


class _PoisonedMemory(TorchFunctionMode):  # type: ignore[misc]
    """Memory that nobody has written holds NaN and not what some earlier call left there."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func in _UNINITIALISED and isinstance(result, torch.Tensor):
            if result.is_floating_point() or result.is_complex():
                result.fill_(float("nan"))
            elif result.dtype != torch.bool:
                result.fill_(torch.iinfo(result.dtype).max)
        return result


@contextlib.contextmanager
def _replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    original = getattr(owner, name)
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, original)


def _resources_of(kernel: Any) -> Resources:
    """What a compiled and loaded kernel says of itself."""
    metadata = getattr(kernel, "metadata", None)
    return Resources(
        registers=getattr(kernel, "n_regs", None),
        spills=getattr(kernel, "n_spills", None),
        shared_bytes=getattr(metadata, "shared", None),
        warps=getattr(metadata, "num_warps", None),
    )


def _own_functions() -> list[Any]:
    """The candidate's ``@triton.jit`` functions, wherever it keeps them."""
    return [item for item in gc.get_objects() if issubclass(type(item), JITFunction) and _is_own(item)]


def _is_own(function: Any) -> bool:
    code = getattr(getattr(function, "fn", None), "__code__", None)
    return code is not None and provenance.is_candidates(code.co_filename)


def _compiled_by_torch() -> bool:
    dynamo = sys.modules.get("torch._dynamo.utils")
    return bool(dynamo and dynamo.counters["stats"]["unique_graphs"])


def _libraries() -> frozenset[str]:
    """Shared libraries in this process that neither the system, a package nor Triton brought."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        paths = {line.split(maxsplit=5)[5].strip() for line in file if ".so" in line}
    return frozenset(path for path in paths if _is_foreign(path))


def _is_foreign(path: str) -> bool:
    name = os.path.basename(path.removesuffix(" (deleted)"))
    if not (name.endswith(".so") or ".so." in name) or name.startswith(_TRITON_LIBRARIES):
        return False
    return not path.startswith(_SYSTEM_FOLDERS) and provenance.is_candidates(path)
