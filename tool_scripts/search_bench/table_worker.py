"""Child of ``time_kernel_table.py``: compiles or times candidates, one JSON order a line, answers likewise.

A candidate may end this process (an illegal access poisons the CUDA context): the one at hand is named before
it starts, and the parent goes on with a fresh child.
"""

from __future__ import annotations

import importlib
import json
import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.runtime import driver

from tool_scripts.search_bench.table import point_of
from tool_scripts.search_bench.templates.launching import Launcher
from tool_scripts.search_bench.templates.space import EAGER, Point

Say = Callable[..., None]

TOLERANCE = 0.01  # absolute and relative, against float64
_FLUSH_BYTES = 256 << 20
_REPEAT_US = 3000.0  # GPU time that one repeat may take, and its calls at most
_CALLS = 10
_SLOW_US = 20_000.0  # candidates above this get the fewer repeats
_SLOW_REPEATS = 3
_SEED = 20


class _NoGpu:
    """What Triton asks a driver for when it compiles, where there is no GPU."""

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cuda", 90, 32)

    def get_current_device(self) -> int:
        return 0

    def get_current_stream(self, device: int) -> int:
        return 0


def _templates(family: str) -> Any:
    return importlib.import_module(f"tool_scripts.search_bench.templates.{family}")


def _run(point: Point, tensors: tuple[torch.Tensor, ...], launcher: Launcher) -> torch.Tensor:
    templates = _templates(point.family)
    if point.structure == EAGER:
        return templates.eager(tensors)
    return templates.candidate(point.structure, point.choices, tensors, launcher)


def failure(error: BaseException) -> tuple[str, str]:
    """The status and the first line of an error that a candidate met."""
    kind, module = type(error).__name__, type(error).__module__
    text = (str(error).strip().splitlines() or [""])[-1 if kind == "CompilationError" else 0][:160]
    if kind == "OutOfResources":
        return "out_of_resources", text
    compiling = module.startswith("triton.compiler") or kind in ("PTXASError", "AssertionError")
    if compiling or "PassManager" in text or "ptxas" in text:
        return "compile_error", f"{kind}: {text}"
    return "launch_error", f"{kind}: {text}"


def compile_points(points: Sequence[Point], say: Say) -> None:
    """Compile the kernels of these candidates into Triton's cache."""
    for point in points:
        if point.structure == EAGER:
            continue
        tensors = _templates(point.family).inputs(point.shape, "meta")
        try:
            _run(point, tensors, Launcher(point.choices, compile_only=True))
        except Exception as error:  # noqa: BLE001 - met again, and recorded, when the candidate is timed
            say(failed=failure(error))


class _Mark:
    """A moment, where there is no CUDA event."""

    def __init__(self) -> None:
        self._at = time.perf_counter()

    def elapsed_time(self, end: _Mark) -> float:
        """Milliseconds until ``end``."""
        return (end._at - self._at) * 1000


class Timing:
    """Inputs and float64 references of the shapes seen, and the stopwatch."""

    def __init__(self, device: str) -> None:
        self._device = device
        self._tensors: dict[tuple[str, tuple[int, ...]], tuple[torch.Tensor, ...]] = {}
        self._wanted: dict[tuple[str, tuple[int, ...]], torch.Tensor] = {}
        self._flushed = torch.empty(_FLUSH_BYTES if device == "cuda" else 0, dtype=torch.int8, device=device)

    def _inputs(self, point: Point) -> tuple[tuple[torch.Tensor, ...], torch.Tensor]:
        key = (point.family, point.shape)
        if key not in self._tensors:
            torch.manual_seed(_SEED)
            templates = _templates(point.family)
            tensors = templates.inputs(point.shape, self._device)
            exact = tuple(t.double() if t.is_floating_point() else t for t in tensors)
            self._wanted[key] = templates.eager(exact)
            self._tensors[key] = tensors
        return self._tensors[key], self._wanted[key]

    def check(self, point: Point) -> tuple[str, str]:
        """Run once on poisoned buffers and compare; returns a status and what was found."""
        tensors, wanted = self._inputs(point)
        got = _run(point, tensors, Launcher(point.choices, poison=True))
        self.synchronise()
        if got.shape != wanted.shape:
            return "wrong", f"shape {tuple(got.shape)}"
        difference = got.double().sub_(wanted).abs_()
        allowed = wanted.abs().mul_(TOLERANCE).add_(TOLERANCE)
        wrong = int((~(difference <= allowed)).sum())
        if wrong:
            return "wrong", f"{wrong} of {wanted.numel()} numbers"
        return "ok", f"{float(difference.max()):.1e}"

    def repeat_us(self, point: Point, guess_us: float | None) -> float:
        """The median time of a few calls with a cold L2 cache."""
        tensors, _ = self._inputs(point)
        launcher = Launcher(point.choices)
        calls = 1 if guess_us is None else max(1, min(_CALLS, int(_REPEAT_US / (guess_us + 80))))
        spans: list[tuple[Any, Any]] = []
        for _ in range(calls):
            self._flushed.zero_()
            start = self._mark()
            _run(point, tensors, launcher)
            spans.append((start, self._mark()))
        self.synchronise()
        return statistics.median(float(start.elapsed_time(end)) * 1000 for start, end in spans)

    def _mark(self) -> Any:
        if self._device != "cuda":
            return _Mark()
        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def synchronise(self) -> None:
        """Wait for the device; raises what its kernels ran into."""
        if self._device == "cuda":
            torch.cuda.synchronize()


def _digits(value: float, digits: int = 4) -> float:
    """``value`` with that many digits that count."""
    return round(value, digits - 1 - math.floor(math.log10(value))) if value > 0 else 0.0


def time_batch(timing: Timing, points: Sequence[Point], repeats: int, say: Say) -> None:
    """Check all, then time them in turns, so that a candidate's repeats lie seconds apart."""
    right: list[int] = []
    for number, point in enumerate(points):
        say(begin=number)
        try:
            status, message = timing.check(point)
        except Exception as error:  # noqa: BLE001 - whatever a candidate raises is its result
            status, message = failure(error)
        if status == "ok":
            right.append(number)
        else:
            say(result=number, status=status, message=message)
        try:
            timing.synchronise()
        except RuntimeError:
            sys.exit(3)  # the context is lost
    guesses = {}
    for number in right:
        say(begin=number)
        guesses[number] = timing.repeat_us(points[number], None)
    times: dict[int, list[float]] = {number: [] for number in right}
    for turn in range(repeats):
        for number in right:
            if guesses[number] <= _SLOW_US or turn < _SLOW_REPEATS:
                say(begin=number)
                times[number].append(_digits(timing.repeat_us(points[number], guesses[number])))
    for number in right:
        say(result=number, status="ok", us=times[number])


def about() -> dict[str, Any]:
    """The hardware and versions that stand beside the table."""
    gpu = torch.cuda.get_device_name() if torch.cuda.is_available() else "none"
    versions = {"python": sys.version.split()[0], "torch": torch.__version__, "triton": triton.__version__}
    return {"hardware": gpu, "versions": {**versions, "cuda": torch.version.cuda}}


def serve(mode: str) -> None:
    """Answer ``compile`` or ``time`` orders until there are no more."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # the compiler prints on stdout

    def say(**answer: Any) -> None:
        answers.write(json.dumps(answer) + "\n")
        answers.flush()

    timing = Timing("cuda" if torch.cuda.is_available() else "cpu") if mode == "time" else None
    if timing is None and not torch.cuda.is_available():
        driver.set_active(_NoGpu())
    say(ready=True, about=about())
    for line in sys.stdin:
        order = json.loads(line)
        points = [point_of(data) for data in order["points"]]
        if timing is not None:
            time_batch(timing, points, order["repeats"], say)
        else:
            compile_points(points, say)
        say(end=True)


if __name__ == "__main__":
    serve(sys.argv[1])
