"""Launches of the candidate's own kernels are counted, and skipped on request."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import torch
from triton.backends.nvidia.driver import CudaLauncher
from triton.compiler.compiler import CompiledKernel

from adaexplore.core.judging.flags import Flag
from online_judge.candidate.launches import LaunchMeter
from online_judge.candidate.profile import profile_share, summarise
from online_judge.checks.behaviour.own_kernels import KernelUse
from online_judge.checks.facts.kernels import MAX_NAMED, KernelShare, KernelTime, Launches, Resources
from online_judge.common.modules import load_file
from online_judge.cpu import simulated_cuda
from online_judge.verdict.flags import of_candidate

KERNELS = """
import torch
import triton
import triton.language as tl

@triton.jit
def plain(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n) * 2, mask=offsets < n)

tuned = triton.autotune([triton.Config({"BLOCK": 32}), triton.Config({"BLOCK": 64})], key=["n"])(
    triton.heuristics({})(plain)
)
handles = {}

def launch(x, y):
    plain[(2,)](x, y, x.numel(), BLOCK=64)

def launch_tuned(x, y):
    tuned[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, y, x.numel())

def launch_run(x, y):
    plain.run(x, y, x.numel(), BLOCK=64, grid=(2,), warmup=False)

def launch_handle(x, y):
    compiled = plain.warmup(x, y, x.numel(), BLOCK=64, grid=(1,))
    compiled[(2, 1, 1)](x, y, x.numel())

def launch_cached_runner(x, y):
    if "runner" not in handles:
        handles["runner"] = plain.warmup(x, y, x.numel(), BLOCK=64, grid=(1,))[(2, 1, 1)]
    handles["runner"](x, y, x.numel())

def launch_nothing(x, y):
    y.copy_(x * 2)

def empty_grid(x, y):
    plain[(0,)](x, y, 0, BLOCK=64)

def out_of_fresh_memory(x, y):
    y = torch.empty_like(x)
    plain[(2,)](x, y, x.numel(), BLOCK=64)
    return y
"""
WAYS = ["launch", "launch_tuned", "launch_run", "launch_handle", "launch_cached_runner"]


@pytest.fixture
def load(tmp_path: Path) -> Iterator[Callable[..., ModuleType]]:
    def loaded(source: str, name: str = "candidate_of_test") -> ModuleType:
        file = tmp_path / f"{name}.py"
        file.write_text(source)
        return load_file(file, name)

    yield loaded
    sys.modules.pop("candidate_of_test", None)


@pytest.fixture
def meter() -> Iterator[LaunchMeter]:
    with simulated_cuda("sm_90"):
        yield LaunchMeter(cuda=False)


@pytest.mark.parametrize("way", WAYS)
def test_every_way_to_launch_is_counted(
    way: str, meter: LaunchMeter, load: Callable[..., ModuleType]
) -> None:
    module = load(KERNELS)
    x, y = torch.arange(100.0), torch.zeros(100)
    getattr(module, way)(x, y)
    with meter.counting():
        getattr(module, way)(x, y)
    seen = meter.launches()
    assert seen.total == 1
    assert seen.names == ("plain",)
    assert seen.defined >= 1
    assert torch.equal(y, x * 2)


@pytest.mark.parametrize("way", WAYS)
def test_skipping_leaves_own_kernels_out(
    way: str, meter: LaunchMeter, load: Callable[..., ModuleType]
) -> None:
    module = load(KERNELS)
    x, y = torch.arange(100.0), torch.zeros(100)
    getattr(module, way)(x, y)
    y.zero_()
    with meter.skipping():
        getattr(module, way)(x, y)
    assert not y.any()
    assert meter.launches().total == 1
    getattr(module, way)(x, y)
    assert torch.equal(y, x * 2)


def test_counts_name_kernel_and_grid(meter: LaunchMeter, load: Callable[..., ModuleType]) -> None:
    module = load(KERNELS)
    x, y = torch.arange(100.0), torch.zeros(100)
    with meter.counting():
        module.launch(x, y)
        module.launch(x, y)
        module.plain[(4, 1)](x, y, 100, BLOCK=32)
    assert meter.launches().counts == {"plain[2, 1, 1]": 2, "plain[4, 1, 1]": 1}


@pytest.mark.parametrize("way", ["launch_nothing", "empty_grid"])
def test_call_without_kernels_counts_nothing(
    way: str, meter: LaunchMeter, load: Callable[..., ModuleType]
) -> None:
    module = load(KERNELS)
    with meter.counting():
        getattr(module, way)(torch.ones(8), torch.ones(8))
    seen = meter.launches()
    assert (seen.counts, seen.total, seen.unseen) == ({}, 0, ())


def test_defined_kernels_count_without_launches(meter: LaunchMeter, load: Callable[..., ModuleType]) -> None:
    before = meter.launches().defined
    module = load(KERNELS)
    assert meter.launches().defined == before + 1
    assert module.plain is not None


def test_kernel_from_generated_file_counts_as_own(
    meter: LaunchMeter, load: Callable[..., ModuleType], tmp_path: Path
) -> None:
    load(KERNELS, "generated_of_test")
    module = load("from generated_of_test import launch")
    with meter.counting():
        module.launch(torch.ones(8), torch.ones(8))
    assert meter.launches().total == 1
    sys.modules.pop("generated_of_test")


def test_skipping_finds_no_earlier_result_in_fresh_memory(
    meter: LaunchMeter, load: Callable[..., ModuleType]
) -> None:
    module = load(KERNELS)
    x = torch.arange(100.0)
    del_me = module.out_of_fresh_memory(x, None)
    assert torch.equal(del_me, x * 2)
    del del_me
    with meter.skipping():
        assert module.out_of_fresh_memory(x, None).isnan().all()


def test_nothing_stays_installed(meter: LaunchMeter) -> None:
    from online_judge.cpu.launching import Launcher

    before = (Launcher.carry_out, CudaLauncher.__call__)
    with pytest.raises(ZeroDivisionError), meter.counting():
        raise ZeroDivisionError
    assert (Launcher.carry_out, CudaLauncher.__call__) == before


class Gpu:
    """Triton's launcher and compiled kernels with everything below them left out."""

    def __init__(self) -> None:
        self.launched: list[int] = []
        self.kept: list[Any] = []

    def kernel(self, name: str, function: int, file: str | None) -> Any:
        launcher: Any = object.__new__(CudaLauncher)
        launcher.num_ctas = 1
        for scratch in ("global_scratch", "profile_scratch"):
            setattr(launcher, f"{scratch}_size", 0)
            setattr(launcher, f"{scratch}_align", 1)
        launcher.launch_cooperative_grid = launcher.launch_pdl = False
        launcher.arg_annotations = launcher.kernel_signature = None
        launcher.launch = lambda x, y, z, stream, handle, *rest: self.launched.append(handle)
        kernel = object.__new__(CompiledKernel)
        code = SimpleNamespace(co_filename=file)
        source = SimpleNamespace(fn=SimpleNamespace(fn=SimpleNamespace(__code__=code))) if file else None
        kernel.src, kernel.name, kernel.function = source, name, function
        kernel.module, kernel.packed_metadata, kernel._run = object(), None, launcher
        kernel.launch_metadata = lambda *_: None
        self.kept.append(kernel)
        return kernel


def launch_as_jit_does(kernel: Any) -> None:
    kernel.run(4, 2, 1, 0, kernel.function, kernel.packed_metadata, None, None, None, "argument")


def test_cuda_distinguishes_own_kernels_from_generated_ones() -> None:
    gpu = Gpu()
    own = gpu.kernel("own", 11, "/home/candidate process/candidate.py")
    textual = gpu.kernel("textual", 12, None)
    inductor = gpu.kernel("triton_poi_fused", 13, "/tmp/torchinductor_root/ab/cab.py")
    package = gpu.kernel("package", 14, str(Path(torch.__file__).parent / "sparse" / "_triton_ops.py"))
    kernels = (own, textual, inductor, package)
    cached = own.run
    meter = LaunchMeter(cuda=True)
    with meter.counting():
        for kernel in kernels:
            launch_as_jit_does(kernel)
        cached(4, 2, 1, 0, 11, None, None, None, None)
        own[(7, 1, 1)]("argument", stream=0)
    assert gpu.launched == [11, 12, 13, 14, 11, 11]
    assert meter.launches().counts == {"own[4, 2, 1]": 2, "textual[4, 2, 1]": 1, "own[7, 1, 1]": 1}
    with meter.skipping():
        for kernel in kernels:
            launch_as_jit_does(kernel)
    assert gpu.launched[6:] == [13, 14]


def test_cuda_reports_compiler_resources_of_own_kernels() -> None:
    gpu = Gpu()
    own = gpu.kernel("own", 21, "/home/candidate process/candidate.py")
    own.n_regs, own.n_spills = 40, 2
    own.metadata = SimpleNamespace(shared=4096, num_warps=8)
    silent = gpu.kernel("silent", 22, "/home/candidate process/candidate.py")
    package = gpu.kernel("package", 23, str(Path(torch.__file__).parent / "sparse" / "_triton_ops.py"))
    meter = LaunchMeter(cuda=True)
    with meter.counting():
        for kernel in (own, silent, package):
            launch_as_jit_does(kernel)
        own[(3, 1, 1)]("argument", stream=0)
    assert meter.resources() == {
        "own": Resources(40, 2, 4096, 8, programs=8),
        "silent": Resources(None, None, None, None, programs=8),
    }
    for found in meter.resources().values():
        assert Resources.from_claim(json.loads(json.dumps(found.to_json()))) == found
    with meter.counting():
        pass
    assert meter.resources() == {}


def test_on_cuda_replays_of_graphs_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda.graphs.CUDAGraph, "replay", lambda graph: "replayed")
    meter = LaunchMeter(cuda=True)
    with meter.counting():
        assert torch.cuda.graphs.CUDAGraph.replay(None) == "replayed"
    assert meter.launches().unseen == ("graph",)


def test_extension_of_the_candidate_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = LaunchMeter(cuda=True)
    with meter.counting():
        pass
    assert not meter.launches().extension
    monkeypatch.setattr(
        "online_judge.candidate.launches._libraries", lambda: frozenset({"/home/candidate process/fused.so"})
    )
    assert meter.launches().extension


@pytest.mark.parametrize(
    ("path", "foreign"),
    [
        ("/home/candidate process/build/fused/fused.so", True),
        ("/home/candidate process/build/fused.cpython-311-x86_64-linux-gnu.so (deleted)", True),
        ("/home/candidate process/triton/ABC/__triton_launcher.cpython-311-x86_64-linux-gnu.so", False),
        ("/home/candidate process/triton/ABC/cuda_utils.cpython-311-x86_64-linux-gnu.so", False),
        ("/usr/lib/x86_64-linux-gnu/libcuda.so.1", False),
        ("/home/candidate process/data.so.json.txt/readme", False),
        (str(Path(torch.__file__).parent / "lib" / "libtorch.so"), False),
    ],
)
def test_libraries_of_the_system_are_no_extension(path: str, foreign: bool) -> None:
    from online_judge.candidate import launches

    assert launches._is_foreign(path) is foreign


def test_report_survives_its_way() -> None:
    report = Launches({"plain[2, 1, 1]": 2}, 2, 3, ("extension", "graph"))
    assert Launches.from_claim(json.loads(json.dumps(report.to_json()))) == report


@pytest.mark.parametrize(
    "claim",
    [
        None,
        [],
        "x",
        {"counts": [1], "total": "9", "defined": True, "unseen": 3},
        {"total": -5, "unseen": [[]]},
    ],
)
def test_unreadable_claim_counts_as_nothing_launched(claim: object) -> None:
    assert Launches.from_claim(claim) == Launches({}, 0, 0)


def test_hostile_claim_is_cut_to_size() -> None:
    claim = {"counts": {f"{index}{'x' * 10**3}": 10**40 for index in range(1000)}, "total": 1, "defined": 0}
    report = Launches.from_claim(claim)
    assert len(report.counts) == MAX_NAMED
    assert max(map(len, report.counts)) <= 120
    assert max(report.counts.values()) <= 10**9


def test_share_is_that_of_the_own_kernels() -> None:
    share = summarise([("own", 1.0, 7), ("gemm", 2.0, 7), ("own", 1.0, 9)], ["own", "unused"])
    assert share is not None
    assert (share.own, share.total_ms, share.streams) == (0.5, 4.0, 2)
    assert {(kernel.name, kernel.count) for kernel in share.kernels} == {("own", 2), ("gemm", 1)}
    assert KernelShare.from_claim(json.loads(json.dumps(share.to_json()))) == share


def test_own_kernel_under_torch_compile_counts_as_own() -> None:
    share = summarise([("plain_0", 3.0, 7), ("triton_poi_fused_0", 1.0, 7)], ["plain"])
    assert share is not None
    assert share.own == 0.75


def test_profiler_gets_the_names_of_all_own_kernels(
    meter: LaunchMeter, load: Callable[..., ModuleType]
) -> None:
    module = load(KERNELS)
    assert module.plain.__name__ in meter.kernel_names()


LAUNCHED = Launches({"plain[2, 1, 1]": 2}, 2, 3)
IDLE = Launches({}, 0, 3)
OWN = KernelShare(0.9, 2.0, 1, (KernelTime("plain", 1.8, 2),))
LIBRARY = KernelShare(0.1, 2.0, 1, (KernelTime("gemm", 1.8, 1),))
NONE_OWN = KernelShare(0.0, 2.0, 1, (KernelTime("gemm", 2.0, 1),))


def flags_of(launches: Launches, share: KernelShare | None, passed: bool | None) -> list[Flag]:
    use = KernelUse(launches=launches, share=share, passed_without_kernels=passed)
    return of_candidate([use], "/job")


@pytest.mark.parametrize(
    ("launches", "share", "passed_without_kernels", "ids"),
    [
        (LAUNCHED, OWN, False, []),
        (LAUNCHED, None, None, []),
        (LAUNCHED, OWN, True, ["decoy_kernel"]),
        (LAUNCHED, LIBRARY, False, ["library_bound"]),
        (IDLE, None, None, ["no_own_kernel"]),
        (IDLE, None, True, ["no_own_kernel"]),
        (IDLE, NONE_OWN, None, ["no_own_kernel", "library_bound"]),
        (Launches({}, 0, 0, ("extension",)), NONE_OWN, None, []),
        (Launches({}, 0, 2, ("graph",)), None, None, []),
        (Launches({}, 0, 2, ("graph",)), OWN, None, []),
        (Launches({}, 0, 2, ("graph",)), NONE_OWN, None, ["no_own_kernel", "library_bound"]),
        (Launches({}, 0, 0, ("compile",)), None, None, ["no_own_kernel"]),
        (Launches({}, 0, 2, ("compile",)), None, None, []),
        (Launches({}, 0, 2, ("compile",)), NONE_OWN, None, ["no_own_kernel", "library_bound"]),
    ],
)
def test_kernel_claims_raise_these_flags(
    launches: Launches, share: KernelShare | None, passed_without_kernels: bool | None, ids: list[str]
) -> None:
    assert [flag.id for flag in flags_of(launches, share, passed_without_kernels)] == ids


def test_evidence_names_kernels_and_figures() -> None:
    (decoy,) = flags_of(LAUNCHED, None, True)
    assert decoy.evidence == "the outputs are right without plain (2 launches)"
    (absent, bound) = flags_of(IDLE, NONE_OWN, None)
    assert (
        absent.evidence
        == "a call launches none of its 3 @triton.jit functions; longest: gemm, 2.0000 of 2.0000 ms"
    )
    assert bound.evidence == "0% of GPU time in its own kernels; longest: gemm, 2.0000 of 2.0000 ms"


def test_share_keeps_the_longest_kernels() -> None:
    share = summarise([(f"k{index}", float(index + 1), 0) for index in range(20)], [])
    assert share is not None
    assert [kernel.name for kernel in share.kernels] == [f"k{index}" for index in range(19, 11, -1)]


def test_no_gpu_gives_no_share() -> None:
    assert summarise([], []) is None
    assert profile_share(lambda: None, []) is None


SHARE: dict[str, Any] = {"own": 10**14, "streams": 1, "total_ms": 2, "kernels": [["x" * 10**6, 1, 1]] * 100}


@pytest.mark.parametrize(
    "claim",
    [
        *(None, {}),
        *(SHARE | {"own": own} for own in (math.nan, "1", True, -1)),
        *(SHARE | change for change in ({"streams": 1e300}, {"total_ms": []}, {"kernels": [7]})),
    ],
)
def test_unreadable_share_is_none(claim: object) -> None:
    assert KernelShare.from_claim(claim) is None


def test_hostile_share_is_cut_to_size() -> None:
    share = KernelShare.from_claim(SHARE)
    assert share is not None
    assert (share.own, share.streams, share.total_ms, len(share.kernels)) == (1.0, 1, 2.0, 8)
    assert len(share.kernels[0].name) <= 120
