"""Where kernels are only compiled, large tensors have no data and small ones do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from torch import nn
from triton.compiler.errors import CompilationError

from online_judge.cpu import NotCheckedError, simulated_cuda
from online_judge.cpu.dataless import REAL_ELEMENTS, DatalessTensors

LARGE = 1 << 20


@pytest.fixture(autouse=True)
def dataless() -> Iterator[DatalessTensors]:
    with simulated_cuda("sm_90", executes=False) as simulation, torch.no_grad():
        assert simulation is not None
        yield simulation


@triton.jit
def copy(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def test_size_costs_nothing() -> None:
    model = nn.Sequential(nn.Linear(1 << 17, 1 << 17), nn.ReLU(), nn.BatchNorm1d(1 << 17)).cuda()
    y = model(torch.rand(1 << 14, 1 << 17))
    assert (y.shape, y.dtype, y.is_cuda, y.is_meta) == ((1 << 14, 1 << 17), torch.float32, True, False)


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.empty(LARGE, device="cuda"),
        lambda: torch.rand(LARGE).cuda(),
        lambda: torch.rand(LARGE).to("cuda", torch.float16),
        lambda: torch.empty_like(torch.rand(LARGE, device="cuda:0")),
        lambda: torch.rand(LARGE) + torch.ones(1, device="cuda"),
        lambda: torch.rand(LARGE).cpu().cuda(),
        lambda: F.pad(torch.rand(LARGE), (1, 1)),
        lambda: nn.Linear(1024, 1024, device="cuda").weight,
        lambda: torch.full((4,), 2.0, device="cuda"),
    ],
)
def test_tensor_is_a_cuda_tensor(make: Callable[[], torch.Tensor]) -> None:
    tensor = make()
    assert (tensor.is_cuda, tensor.is_cpu, tensor.device) == (True, False, torch.device("cuda", 0))


def test_tensor_on_the_host_is_none() -> None:
    assert not torch.rand(LARGE).cpu().is_cuda
    assert torch.rand(LARGE, device="cuda").to("cpu").device.type == "cpu"


def test_small_tensors_have_values() -> None:
    scale = nn.Parameter(torch.ones(1) * 3)
    assert scale.item() == 3
    assert torch.arange(4).sum().tolist() == 6


@pytest.mark.parametrize(
    "ask",
    [
        lambda x: x.sum().item(),
        lambda x: bool((x > 0).any()),
        lambda x: x[x > 0],
        lambda x: torch.nonzero(x),
        lambda x: torch.equal(x, x + 1),
        lambda x: x.tolist(),
        lambda x: x.cpu().numpy(),
        lambda x: torch.zeros(3).copy_(x[:3]).tolist()[0] + torch.zeros(3).copy_(x[:3]).sum().item(),
    ],
)
def test_candidate_needing_missing_values_is_not_checked(ask: Callable[[torch.Tensor], object]) -> None:
    with pytest.raises(NotCheckedError, match="values"):
        ask(torch.rand(LARGE))


def test_extension_in_another_language_is_not_checked() -> None:
    from torch.utils.cpp_extension import load_inline

    with pytest.raises(NotCheckedError, match="extension"):
        load_inline("name", "int f() { return 1; }")


def test_values_written_by_kernels_are_unknown() -> None:
    x, out = torch.rand(LARGE), torch.zeros(64)
    assert out.sum().item() == 0
    copy[(1,)](x, out, 64, BLOCK=64)
    with pytest.raises(NotCheckedError, match="values"):
        out.sum().item()


def test_launches_are_specialised_as_for_allocated_memory() -> None:
    x = torch.rand(LARGE)
    aligned = copy[(1,)](x, x[4:], 1024, BLOCK=64).asm["ttir"]
    shifted = copy[(1,)](x, x[1:], 1024, BLOCK=64).asm["ttir"]
    assert aligned.count("tt.divisibility = 16") == 3
    assert shifted.count("tt.divisibility = 16") == 2
    assert copy[(1,)](x.half(), x, 1, BLOCK=64).asm["ttir"].count("!tt.ptr<f16>") > 0


def test_compile_errors_are_real() -> None:
    with pytest.raises(CompilationError, match="power of 2"):
        copy[(1,)](torch.rand(LARGE), torch.rand(LARGE), LARGE, BLOCK=60)


def test_autocast_reaches_tensors_without_data() -> None:
    layer, x = nn.Linear(1024, 1024), torch.rand(LARGE).view(-1, 1024)
    with torch.autocast("cuda"):
        assert layer(x).dtype == torch.float16
    with torch.autocast("cuda", dtype=torch.bfloat16):
        assert (x @ x.t()).dtype == torch.bfloat16
    assert layer(x).dtype == torch.float32


def test_values_can_be_had_and_dropped(dataless: DatalessTensors) -> None:
    with dataless.with_values():
        x = torch.ones(LARGE)
        assert x.sum().item() == LARGE
    small, large = dataless.without_values([torch.ones(REAL_ELEMENTS), x])
    assert small.sum().item() == REAL_ELEMENTS
    with pytest.raises(NotCheckedError):
        large.sum().item()


def test_configurations_are_compiled_until_enough_are_usable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("online_judge.cpu.launching.CONFIGURATIONS", 2)
    configurations = [triton.Config({"BLOCK": size}) for size in (16, 32, 60)]
    tuned = triton.autotune(configurations, key=["n"])(copy)
    x = torch.rand(LARGE)
    tuned[(1,)](x, x, LARGE)
    monkeypatch.setattr("online_judge.cpu.launching.CONFIGURATIONS", 3)
    with pytest.raises(CompilationError, match="power of 2"):
        tuned[(1,)](x, x, LARGE - 1)


def test_pruned_configurations_are_not_compiled() -> None:
    configurations = [triton.Config({"BLOCK": size}) for size in (60, 32)]
    prune = {"early_config_prune": lambda configs, args, **_: [c for c in configs if c.kwargs["BLOCK"] == 32]}
    tuned = triton.autotune(configurations, key=["n"], prune_configs_by=prune)(copy)
    tuned[(1,)](torch.rand(LARGE), torch.rand(LARGE), LARGE)
    assert tuned.best_config.kwargs == {"BLOCK": 32}
