"""Launch counts, calls without kernels, kernel shares, hardware bounds and GPU state on a real GPU."""

from __future__ import annotations

import importlib.util
import logging
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch

from adaexplore.core.judging.flags import Flag
from online_judge.candidate.autotuning import quick_autotuning
from online_judge.candidate.background import Background
from online_judge.candidate.launches import LaunchMeter
from online_judge.candidate.patch_audit import Watchdog
from online_judge.candidate.profile import profile_share
from online_judge.checks.behaviour.own_kernels import KernelUse
from online_judge.checks.facts.kernels import KernelShare, Launches
from online_judge.checks.timing.bounds import CallWork
from online_judge.common.gpu_peaks import peak
from online_judge.evaluator.timing import gpu_state
from online_judge.verdict.flags import of_candidate

log = logging.getLogger(__name__)

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA device"),
    pytest.mark.filterwarnings("default"),
]

CANDIDATE = """
import torch
import triton
import triton.language as tl

@triton.jit
def double(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2, mask=offsets < n)

tuned = triton.autotune([triton.Config({"BLOCK": 512}), triton.Config({"BLOCK": 1024})], key=["n"])(
    triton.heuristics({})(double)
)
kept = {}

def plain(x):
    y = torch.empty_like(x)
    double[(triton.cdiv(x.numel(), 1024),)](x, y, x.numel(), BLOCK=1024)
    return y

def autotuned(x):
    y = torch.empty_like(x)
    tuned[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, x.numel())
    return y

def handle(x):
    y = torch.empty_like(x)
    compiled = double.warmup(x, y, x.numel(), BLOCK=1024, grid=(1,))
    compiled[(triton.cdiv(x.numel(), 1024), 1, 1)](x, y, x.numel(), 1024)
    return y

def cached_launcher(x):
    y = torch.empty_like(x)
    if "run" not in kept:
        compiled = double.warmup(x, y, x.numel(), BLOCK=1024, grid=(1,))
        compiled._init_handles()
        kept["kernel"], kept["run"] = compiled, compiled.run
    compiled, stream = kept["kernel"], torch.cuda.current_stream().cuda_stream
    grid = (triton.cdiv(x.numel(), 1024), 1, 1)
    metadata = (compiled.packed_metadata, None, None, None)
    kept["run"](*grid, stream, compiled.function, *metadata, x, y, x.numel(), 1024)
    return y

def decoy(x):
    plain(x[:1, :64])
    return torch.mul(x, 2)

def library(x):
    return torch.mul(x, 2)

def graph(x):
    if "graph" not in kept:
        kept["x"] = x.clone()
        plain(kept["x"])
        torch.cuda.synchronize()
        kept["graph"] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(kept["graph"]):
            kept["y"] = plain(kept["x"])
    kept["x"].copy_(x)
    kept["graph"].replay()
    return kept["y"].clone()

side = torch.cuda.Stream()

def two_streams(x):
    side.wait_stream(torch.cuda.current_stream())
    y, n = torch.empty_like(x), x.numel() // 2
    with torch.cuda.stream(side):
        double[(triton.cdiv(n, 1024),)](x[:2048], y[:2048], n, BLOCK=1024)
    double[(triton.cdiv(n, 1024),)](x[2048:], y[2048:], n, BLOCK=1024)
    torch.cuda.current_stream().wait_stream(side)
    return y
"""


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[[], tuple[LaunchMeter, Watchdog, ModuleType]]]:
    def loaded() -> tuple[LaunchMeter, Watchdog, ModuleType]:
        torch.zeros(1, device="cuda")
        meter, watchdog = LaunchMeter(cuda=True), Watchdog()
        file = tmp_path / "candidate.py"
        file.write_text(CANDIDATE)
        spec = importlib.util.spec_from_file_location("candidate", file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules["candidate"] = module
        spec.loader.exec_module(module)
        return meter, watchdog, module

    yield loaded
    sys.modules.pop("candidate", None)  # the next one is no replacement of it


def inputs() -> torch.Tensor:
    return torch.randn(4096, 4096, device="cuda")


@pytest.mark.parametrize(
    ("name", "launched", "ids"),
    [
        ("plain", 1, []),
        ("autotuned", 1, []),
        ("handle", 1, []),
        ("cached_launcher", 1, []),
        ("two_streams", 2, []),
        ("graph", 0, ["library_bound"]),
        ("decoy", 1, ["decoy_kernel", "library_bound"]),
        ("library", 0, ["no_own_kernel", "library_bound"]),
    ],
)
def test_own_kernels_are_seen_and_missed(
    load: Callable[[], tuple[LaunchMeter, Watchdog, ModuleType]], name: str, launched: int, ids: list[str]
) -> None:
    meter, watchdog, module = load()
    background = Background()
    call = getattr(module, name)
    call(inputs())
    call(inputs())
    background.settle()
    x = inputs()
    with meter.counting():
        y = call(x)
    left = background.found()
    torch.cuda.synchronize()
    assert torch.equal(y, x * 2)
    seen = meter.launches()
    assert seen.total == launched, seen
    assert not seen.extension
    del y
    x = inputs()
    with meter.skipping():
        ghost = call(x)
    passed_without_kernels = torch.equal(ghost, x * 2)
    begin = time.perf_counter()
    share = profile_share(lambda: call(x), meter.kernel_names())
    log.info("profiled in %.2f s: %s", time.perf_counter() - begin, share)
    assert share is not None
    assert [flag.id for flag in flags_of(seen, share, passed_without_kernels)] == ids, (
        seen,
        share,
    )
    assert share.streams == 2 if name == "two_streams" else share.streams >= 1
    assert torch.equal(call(x), x * 2)
    assert (watchdog.changes(), left) == ([], [])


def test_autotuner_compiles_all_configurations_before_timing(
    load: Callable[[], tuple[LaunchMeter, Watchdog, ModuleType]],
) -> None:
    _, _, module = load()
    compiled = []

    def bench(call: Callable[[], object], quantiles: object) -> list[float]:
        compiled.append(len(module.double.device_caches[torch.cuda.current_device()][0]))
        call()
        return [1.0, 1.0, 1.0]

    module.tuned.do_bench = bench
    x = inputs()
    with quick_autotuning():
        assert torch.equal(module.autotuned(x), x * 2)
    assert compiled == [2, 2]


def test_second_profile_is_quick(load: Callable[[], tuple[LaunchMeter, Watchdog, ModuleType]]) -> None:
    meter, _, module = load()
    x = inputs()
    module.plain(x)
    profile_share(lambda: module.plain(x), meter.kernel_names())
    begin = time.perf_counter()
    share = profile_share(lambda: module.plain(x), meter.kernel_names())
    assert time.perf_counter() - begin < 1.0
    assert share is not None
    assert share.own == pytest.approx(1.0)


def test_torch_compile_is_no_kernel_of_the_candidates() -> None:
    meter, watchdog = LaunchMeter(cuda=True), Watchdog()
    x = inputs()
    compiled = torch.compile(lambda value: torch.relu(value) * 2 + 1)
    compiled(x)
    with meter.counting():
        compiled(x)
    share = profile_share(lambda: compiled(x), [])
    assert share is not None
    found = flags_of(meter.launches(), share, None)
    assert [flag.id for flag in found] == ["no_own_kernel", "library_bound"]
    assert watchdog.changes() == []


def flags_of(launches: Launches, share: KernelShare | None, passed: bool | None) -> list[Flag]:
    use = KernelUse(launches=launches, share=share, passed_without_kernels=passed)
    return of_candidate([use], "/job")


def bounds(**work: Any) -> list[Flag]:
    return of_candidate([CallWork(**work)], "/job")


def test_fastest_copy_is_within_the_bounds() -> None:
    name = torch.cuda.get_device_name()
    limits = peak(name, torch.cuda.get_device_properties(0))
    assert limits is not None
    target = torch.empty(2**30, dtype=torch.float32, device="cuda")
    source = torch.ones_like(target)
    for fill, read in ((lambda: target.zero_(), 0), (lambda: target.copy_(source), target.nbytes)):
        times = []
        for _ in range(5):
            start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            start.record()
            fill()
            end.record()
            end.synchronize()
            times.append(start.elapsed_time(end))
        rate = (target.nbytes + read) / min(times) / 1e9
        log.info("%s: %.2f TB/s of %.2f", name, rate, limits.bytes_per_s / 1e12)
        assert bounds(gpu_ms=min(times), peak=limits, output_bytes=target.nbytes, read_bytes=read) == []
        assert bounds(gpu_ms=min(times) / 2, peak=limits, output_bytes=target.nbytes * 2, read_bytes=read)


def test_state_of_the_gpu_is_read_quickly() -> None:
    if importlib.util.find_spec("pynvml") is None and shutil.which("nvidia-smi") is None:
        pytest.skip("neither NVML bindings nor nvidia-smi")
    gpu_state.snapshot("0")
    begin = time.perf_counter()
    state = gpu_state.snapshot("0")
    seconds = time.perf_counter() - begin
    log.info("%.1f ms: %s", seconds * 1e3, state)
    assert state is not None
    assert state.sm_mhz > 0
    assert state.memory_mhz > 0
    if importlib.util.find_spec("pynvml") is not None:
        assert seconds < 0.02


def test_nvidia_smi_tells_the_same() -> None:
    if shutil.which("nvidia-smi") is None:
        pytest.skip("nvidia-smi is missing")
    state = gpu_state._from_smi("0")
    help_text = subprocess.run(["nvidia-smi", "--help-query-gpu"], capture_output=True, text=True).stdout
    assert state is not None, [line for line in help_text.splitlines() if "reasons" in line]
