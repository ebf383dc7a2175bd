"""Count the launches of the candidate's own kernels, or run a call without them."""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

import torch
import torch.cuda.graphs
from torch.overrides import TorchFunctionMode
from triton.backends.nvidia.driver import CudaLauncher
from triton.compiler.compiler import CompiledKernel
from triton.runtime.jit import JITFunction

from online_judge.candidate import provenance
from online_judge.checks.facts.kernels import MAX_NAME, MAX_NAMED, Launches, Resources, Unseen
from online_judge.cpu.compile_gate import CompiledLaunch
from online_judge.cpu.launching import Launcher
from online_judge.cpu.patching import Patches
from online_judge.cpu.tensors import UNINITIALISED, poison

_TRITON_LIBRARIES = ("cuda_utils", "__triton_launcher")
_SYSTEM_FOLDERS = ("/usr/", "/lib", "/opt/", "/nix/")
_GPU_PACKAGES = frozenset(("cupy", "numba.cuda", "pycuda", "tilelang", "cutlass", "cuda.bindings.driver"))

Grid = tuple[int, int, int]


@dataclass(frozen=True)
class _Kernel:
    name: str
    own: bool
    resources: Resources | None = None


class LaunchMeter:
    """Counts, or skips, launches of the candidate's own kernels within a block.

    Make it before the candidate is loaded, so that its libraries can be distinguished from others.
    Nothing is installed outside of the blocks, so timed calls are not slowed. Kernels count however they were
    compiled or wrapped, except those that torch generates.
    """

    def __init__(self, *, cuda: bool) -> None:
        self._cuda = cuda
        self._libraries = _libraries()
        self._packages = _GPU_PACKAGES & sys.modules.keys()
        self._kernels: dict[int, _Kernel] = {}
        self._counts: Counter[str] = Counter()
        self._resources: dict[str, Resources] = {}
        self._replays = 0

    def counting(self) -> contextlib.AbstractContextManager[None]:
        return self._watching(skip=False)

    @contextlib.contextmanager
    def skipping(self) -> Iterator[None]:
        """Run the block without the candidate's own kernels, fresh memory full of NaN.

        If the outputs are still right, the kernels are decoys. Inputs must differ from those of the call
        before, or buffers that the candidate keeps would hold the right outputs. Kernels must be tuned
        already: an autotuner would choose blindly here.
        """
        poison = contextlib.nullcontext() if _compiled_by_torch() else _PoisonedMemory()
        with self._watching(skip=True), poison:
            yield

    def launches(self) -> Launches:
        """Return the launches of the last block, skipped ones included."""
        packages = _GPU_PACKAGES & sys.modules.keys()
        unseen: list[Unseen] = []
        if packages - self._packages or _libraries() - self._libraries:
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
        """Return the resources of own kernels of the last block by name; of several, the last launched."""
        return dict(self._resources)

    def kernel_names(self) -> list[str]:
        """Return names that a profiler may show for the candidate's kernels."""
        named = {function.__name__ for function in _own_functions()}
        return sorted(named.union(key.partition("[")[0] for key in self._counts))

    @contextlib.contextmanager
    def _watching(self, *, skip: bool) -> Iterator[None]:
        self._counts.clear()
        self._resources.clear()
        self._kernels.clear()
        self._replays = 0
        with Patches() as patches:
            if self._cuda:
                patches.set(CudaLauncher, "__call__", self._on_cuda(CudaLauncher.__call__, skip))
                graph = torch.cuda.graphs.CUDAGraph
                patches.set(graph, "replay", self._replay(graph.replay, skip))
            else:
                patches.set(Launcher, "carry_out", self._simulated(Launcher.carry_out, skip))
            yield

    def _on_cuda(self, original: Callable[..., object], skip: bool) -> Callable[..., object]:
        """Intercept the call of the launcher in which every launch of Triton ends."""

        def launch(
            launcher: object, x: int, y: int, z: int, stream: int, function: int, *rest: object
        ) -> object:
            kernel = self._kernel(function)
            if self._note(kernel, (x, y, z)) and skip:
                return None
            return original(launcher, x, y, z, stream, function, *rest)

        return launch

    def _simulated(self, original: Callable[..., None], skip: bool) -> Callable[..., None]:
        def carry_out(launcher: Launcher, compiled: CompiledLaunch, grid: Grid) -> None:
            kernel = _Kernel(compiled.kernel.__name__, _is_own(compiled.kernel))
            if not (self._note(kernel, grid) and skip):
                original(launcher, compiled, grid)

        return carry_out

    def _replay(self, original: Callable[..., object], skip: bool) -> Callable[..., object]:
        def replay(graph: object) -> object:
            self._replays += 1
            return None if skip else original(graph)

        return replay

    def _note(self, kernel: _Kernel, grid: Grid) -> bool:
        """Count a launch if its kernel is the candidate's own; return True if so."""
        x, y, z = grid
        if kernel.own and x * y * z:
            self._counts[f"{kernel.name[:MAX_NAME]}[{x}, {y}, {z}]"] += 1
            if kernel.resources is not None and len(self._resources) < MAX_NAMED:
                known = self._resources.get(kernel.name, kernel.resources)
                most = max(x * y * z, known.programs)
                self._resources[kernel.name] = replace(kernel.resources, programs=most)
        return kernel.own

    def _kernel(self, function: int) -> _Kernel:
        """Return the kernel behind a function handle; each is looked up once."""
        if function not in self._kernels:
            for item in gc.get_objects():
                if issubclass(type(item), CompiledKernel) and item.function is not None:
                    source = getattr(item.src, "fn", None)
                    # without a Python source it was compiled from text, which torch never does
                    own = source is None or _is_own(source)
                    self._kernels[item.function] = _Kernel(str(item.name), own, _resources_of(item))
        return self._kernels.setdefault(function, _Kernel("unknown", True))


class _PoisonedMemory(TorchFunctionMode):  # type: ignore[misc]
    """Fills new memory with NaN, so that it holds no results of an earlier call."""

    def __torch_function__(
        self,
        func: Callable[..., object],
        types: object,
        args: tuple[object, ...] = (),
        kwargs: dict[str, object] | None = None,
    ) -> object:
        result = func(*args, **(kwargs or {}))
        if func in UNINITIALISED and isinstance(result, torch.Tensor):
            poison(result)
        return result


def _resources_of(kernel: CompiledKernel) -> Resources:
    metadata = getattr(kernel, "metadata", None)
    return Resources(
        registers=getattr(kernel, "n_regs", None),
        spills=getattr(kernel, "n_spills", None),
        shared_bytes=getattr(metadata, "shared", None),
        warps=getattr(metadata, "num_warps", None),
    )


def _own_functions() -> list[JITFunction]:
    """Return the candidate's ``@triton.jit`` functions, wherever they are kept."""
    return [item for item in gc.get_objects() if issubclass(type(item), JITFunction) and _is_own(item)]


def _is_own(function: object) -> bool:
    code = getattr(getattr(function, "fn", None), "__code__", None)
    return code is not None and provenance.is_candidates(code.co_filename)


def _compiled_by_torch() -> bool:
    dynamo = sys.modules.get("torch._dynamo.utils")
    return bool(dynamo and dynamo.counters["stats"]["unique_graphs"])


def _libraries() -> frozenset[str]:
    """Return shared libraries in this process that come neither from the system, a package nor Triton."""
    with open("/proc/self/maps", encoding="utf-8", errors="replace") as file:
        paths = {line.split(maxsplit=5)[5].strip() for line in file if ".so" in line}
    return frozenset(path for path in paths if _is_foreign(path))


def _is_foreign(path: str) -> bool:
    name = os.path.basename(path.removesuffix(" (deleted)"))
    if not (name.endswith(".so") or ".so." in name) or name.startswith(_TRITON_LIBRARIES):
        return False
    return not path.startswith(_SYSTEM_FOLDERS) and provenance.is_candidates(path)
