"""Replace Triton's launcher: compile with the real front end, then interpret."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, Self

import triton
import triton.testing
from triton.compiler.errors import CompileTimeAssertionFailure
from triton.runtime.autotuner import Autotuner, Config, OutOfResources
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction

from online_judge.cpu.compile_gate import CompiledLaunch, CompileGate
from online_judge.cpu.dataless import DatalessTensors
from online_judge.cpu.interpreter.execution import Grid, Interpreter, launch_tensors
from online_judge.cpu.patching import Patches
from online_judge.cpu.target import GpuModel, SimulatedDriver, run_once
from online_judge.cpu.tensors import is_host

CONFIGURATIONS = 32
"""Number of an autotuned kernel's configurations that are compiled if none is executed."""
_GRID_LIMITS = (2**31 - 1, 65535, 65535)


class Launcher:
    """Compiles launches for one simulated GPU, and executes them if tensors have data."""

    def __init__(
        self, model: GpuModel, dataless: DatalessTensors | None = None, gate: CompileGate | None = None
    ) -> None:
        self._dataless = dataless
        self._gate = gate or CompileGate(model)
        self._interpreter = Interpreter()
        self._model = model

    def install(self, patches: Patches) -> None:
        """Install the launcher instead of Triton's until the patches are undone."""

        def call(function: JITFunction, /, *args: object, **kwargs: object) -> object:
            return self._interpreter.call(function, args, kwargs)

        def run(
            kernel: JITFunction, /, *args: object, grid: object, warmup: bool, **kwargs: object
        ) -> CompiledKernel:
            return self._launch(kernel, args, kwargs, grid, warmup)

        patches.set(JITFunction, "run", run)
        patches.set(JITFunction, "__call__", call)
        patches.set(Autotuner, "_bench", _compile_only if self._dataless is None else _compiler_of_some())
        patches.set(Autotuner, "check_disk_cache", _no_disk_cache)
        patches.set(triton.testing, "do_bench", run_once)
        patches.set(triton.testing, "do_bench_cudagraph", run_once)
        patches.set(driver, "_active", SimulatedDriver(self._model))
        patches.set(driver, "_default", driver.active)

    def _launch(
        self,
        kernel: JITFunction,
        args: tuple[object, ...],
        kwargs: dict[str, object],
        grid: object,
        warmup: bool,
    ) -> CompiledKernel:
        """Compile one launch and, unless it is a warm-up, execute it."""
        for hook in kernel.pre_run_hooks:
            hook(*args, **kwargs)
        compiled = self._gate.compile(kernel, args, kwargs)
        for (name, _), (value, namespace) in kernel.used_global_vals.items():
            if namespace.get(name) is not value and namespace.get(name) != value:
                raise RuntimeError(f"Global variable {name} has changed since this kernel was compiled")
        if not warmup:
            self.execute(compiled, grid)
        return CompiledKernel(self, compiled)

    def execute(self, compiled: CompiledLaunch, grid: Any) -> None:
        """Execute a compiled launch over a grid in any form of Triton's launch syntax."""
        sizes = grid(dict(compiled.arguments)) if callable(grid) else grid
        sizes = (sizes,) if isinstance(sizes, int) else tuple(sizes)
        for size in sizes:
            if not isinstance(size, int) and not hasattr(size, "__index__"):
                raise TypeError(f"grid sizes must be integers, not {type(size).__name__}")
        full = tuple(int(size) for size in (*sizes, 1, 1)[:3])
        if any(size > limit or size < 0 for size, limit in zip(full, _GRID_LIMITS, strict=True)):
            raise RuntimeError(f"Triton Error [CUDA]: invalid argument: grid {full} exceeds {_GRID_LIMITS}")
        for position, value in enumerate(compiled.arguments.values()):
            if is_host(value):
                raise ValueError(
                    f"Pointer argument (at {position}) cannot be accessed from Triton (cpu tensor?)"
                )
        self.carry_out(compiled, (full[0], full[1], full[2]))

    def carry_out(self, compiled: CompiledLaunch, grid: Grid) -> None:
        """Carry out a valid launch; launches are counted or skipped here."""
        if self._dataless is not None:
            self._dataless.forget(launch_tensors(compiled.arguments.values()))
        elif 0 not in grid:
            self._interpreter.run(compiled, grid)


class CompiledKernel:
    """Result of a launch or a warm-up: launchable, with plausible resource figures."""

    def __init__(self, launcher: Launcher, compiled: CompiledLaunch) -> None:
        self._launcher = launcher
        self._compiled = compiled
        self.name = compiled.kernel.__name__
        self.metadata = SimpleNamespace(**{**vars(compiled.options), "shared": 0, "name": self.name})
        self.asm = {"ttir": compiled.ttir}
        self.n_regs = 32
        self.n_spills = 0
        self.n_max_threads = 1024
        self.function = None
        self.src = SimpleNamespace(fn=compiled.kernel, signature=compiled.signature)

    def _init_handles(self) -> None:
        """Load nothing."""

    def result(self) -> Self:
        """Return the kernel itself; Triton returns a future."""
        return self

    def __getitem__(self, grid: object) -> Callable[..., None]:
        def run(*args: object, **_: object) -> None:
            launch = self._compiled
            names = list(launch.arguments)
            dynamic = [name for name in names if launch.signature[name] != "constexpr"]
            given = dict(zip(names if len(args) == len(names) else dynamic, args, strict=True))
            self._launcher.execute(replace(launch, arguments={**launch.arguments, **given}), grid)

        return run


def _compile_only(tuner: Autotuner, /, *args: object, config: Config, **meta: object) -> list[float]:
    """Replace the timing of one configuration: all that compile are equally fast, so the first wins."""
    conflicts = meta.keys() & config.kwargs.keys()
    if conflicts:
        raise ValueError(
            f"Conflicting meta-parameters: {', '.join(conflicts)}."
            " Make sure that you don't re-define auto-tuned symbols."
        )
    try:
        tuner.fn.run(*args, **{**meta, **config.all_kwargs(), "warmup": True})
    except (OutOfResources, CompileTimeAssertionFailure):
        return [math.inf] * 3
    return [1.0] * 3


def _compiler_of_some() -> Callable[..., list[float]]:
    """Like :func:`_compile_only`, but only for the first usable configurations of each tuning."""
    tunings: dict[int, tuple[object, int]] = {}

    def compile_some(tuner: Autotuner, /, *args: object, config: Config, **meta: object) -> list[float]:
        tuning, usable = tunings.get(id(tuner), (None, 0))
        if tuning is not tuner.nargs:  # a new object whenever tuning begins
            usable = 0
        if usable >= CONFIGURATIONS:
            return [math.inf] * 3
        times = _compile_only(tuner, *args, config=config, **meta)
        tunings[id(tuner)] = tuner.nargs, usable + math.isfinite(times[0])
        return times

    return compile_some


def _no_disk_cache(
    tuner: Autotuner, tuning_key: object, configs: object, bench_fn: Callable[[], object]
) -> bool:
    bench_fn()
    return False
