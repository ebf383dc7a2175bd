"""Launches, tuners and errors behave as on a GPU."""

from __future__ import annotations

import pytest
import torch
import triton
import triton.language as tl
from triton.compiler.errors import CompilationError, CompileTimeAssertionFailure

from online_judge.cpu import IllegalAccessError, NotCheckedError, simulated_cuda

pytestmark = pytest.mark.usefixtures("gpu")


@triton.jit
def add_one(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + 1, mask=mask)


def _grid(meta: dict[str, int]) -> tuple[int]:
    return (triton.cdiv(meta["n"], meta["BLOCK"]),)


def _vectors() -> tuple[torch.Tensor, torch.Tensor]:
    x = torch.arange(100.0, device="cuda")
    return x, torch.zeros_like(x)


def test_launch_options_and_callable_grid_are_accepted() -> None:
    x, out = _vectors()
    add_one[_grid](x, out, 100, BLOCK=32, num_warps=8, num_stages=2)
    assert torch.equal(out, x + 1)


@triton.autotune(
    configs=[triton.Config({"BLOCK": 256}), triton.Config({"BLOCK": 16}, num_warps=2)],
    key=["n"],
    prune_configs_by={"early_config_prune": lambda configs, named, **kwargs: configs[1:]},
    reset_to_zero=["out_ptr"],
)
@triton.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@triton.jit
def tuned(x_ptr, out_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    tl.atomic_add(out_ptr + offsets, tl.load(x_ptr + offsets, mask=mask) + (1 if EVEN else 2), mask=mask)


def test_autotuned_kernel_runs_first_usable_configuration_once() -> None:
    x, out = _vectors()
    tuned[_grid](x, out, 100)
    assert torch.equal(out, x + 2)
    assert tuned.best_config.kwargs == {"BLOCK": 16}


@triton.autotune(configs=[triton.Config({"BLOCK": 1 << 20}), triton.Config({"BLOCK": 16})], key=["n"])
@triton.jit
def picky(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK < 1024)
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets, mask=offsets < n), mask=offsets < n)


def test_configuration_that_triton_would_skip_is_skipped() -> None:
    x, out = _vectors()
    picky[_grid](x, out, 100)
    assert torch.equal(out, x)
    with pytest.raises(CompileTimeAssertionFailure):
        picky.fn[(1,)](x, out, 100, BLOCK=2048)


def test_configuration_given_twice_is_the_candidates_error() -> None:
    x, out = _vectors()
    configs = [triton.Config({"BLOCK": 16}), triton.Config({"BLOCK": 32})]
    with pytest.raises(ValueError, match="Conflicting meta-parameters: BLOCK"):
        triton.autotune(configs, key=["n"])(add_one)[_grid](x, out, 100, BLOCK=16)


def test_warmed_up_kernel_reports_resources_and_launches() -> None:
    x, out = _vectors()
    compiled = add_one.warmup(x, out, 100, BLOCK=128, num_warps=2, grid=(1,))
    compiled._init_handles()
    assert out.sum().item() == 0
    assert compiled.n_regs > 0
    assert compiled.metadata.num_warps == 2
    compiled[(1, 1, 1)](x, out, 100, 128)
    assert torch.equal(out, x + 1)


def test_driver_and_benchmark_answer() -> None:
    properties = triton.runtime.driver.active.utils.get_device_properties(0)
    assert properties["multiprocessor_count"] == 132
    assert triton.runtime.driver.active.get_current_target().arch == 90
    assert triton.testing.do_bench(lambda: torch.zeros(1), quantiles=[0.5, 0.2, 0.8]) == [1.0] * 3


@triton.jit
def undefined_name(out_ptr):
    tl.store(out_ptr, missing)  # noqa: F821


@triton.jit
def wrong_shapes(out_ptr):
    tl.store(out_ptr + tl.arange(0, 16), tl.arange(0, 8) + tl.arange(0, 16))


@triton.jit
def too_small_dot(out_ptr):
    a = tl.zeros((4, 4), tl.float16)
    tl.store(out_ptr, tl.sum(tl.dot(a, a)))


@pytest.mark.parametrize(
    ("kernel", "message"),
    [(undefined_name, "missing is not defined"), (wrong_shapes, "incompatible"), (too_small_dot, "K >= 16")],
)
def test_compile_error_is_tritons_own(kernel: triton.JITFunction, message: str) -> None:
    out = torch.zeros(16, device="cuda")
    with pytest.raises(CompilationError) as caught:
        kernel[(1,)](out)
    assert message in str(caught.value)


@triton.jit
def float8(out_ptr):
    tl.store(out_ptr, tl.full((1,), 1.5, tl.float32).to(tl.float8e4nv).to(tl.float32).sum())


def test_target_decides_what_compiles() -> None:
    out = torch.zeros(1, device="cuda")
    float8[(1,)](out)
    assert out.item() == 1.5


def test_older_target_refuses_newer_formats() -> None:
    with simulated_cuda("sm_80"), pytest.raises(CompilationError, match="fp8e4nv"):
        float8[(1,)](torch.zeros(1, device="cuda"))


@pytest.mark.parametrize(
    ("arguments", "options", "error"),
    [((100,), {}, TypeError), ((100,), {"BLOCK": 32, "warps": 4}, KeyError), ((), {"BLOCK": 32}, TypeError)],
)
def test_wrong_launch_arguments_are_tritons_errors(
    arguments: tuple[int, ...], options: dict[str, int], error: type[Exception]
) -> None:
    x, out = _vectors()
    with pytest.raises(error):
        add_one[(4,)](x, out, *arguments, **options)


def test_host_tensor_cannot_be_passed_to_a_kernel() -> None:
    x, out = _vectors()
    with pytest.raises(ValueError, match="cpu tensor"):
        add_one[(4,)](x.cpu(), out, 100, BLOCK=32)


def test_grid_beyond_the_hardware_is_refused() -> None:
    x, out = _vectors()
    with pytest.raises(RuntimeError, match="invalid argument"):
        add_one[(1, 70000)](x, out, 100, BLOCK=32)


def test_jit_function_cannot_be_called_outside_a_kernel() -> None:
    with pytest.raises(RuntimeError, match="outside of the scope of a kernel"):
        add_one(1, 2)


@triton.jit
def scaled(function, kernel):
    return function * kernel


@triton.jit
def names_of_the_launcher(x_ptr, kernel, tuner, args):
    tl.store(x_ptr, scaled(function=args, kernel=kernel) + tuner)


def test_parameters_may_have_any_name() -> None:
    x = torch.zeros(1, dtype=torch.int32, device="cuda")
    names_of_the_launcher[(1,)](x, kernel=2, tuner=3, args=4)
    assert x.item() == 11
    tuned = triton.autotune([triton.Config({}), triton.Config({}, num_warps=2)], key=["args"])
    tuned(names_of_the_launcher)[(1,)](x, kernel=2, tuner=3, args=5)
    assert x.item() == 13


@triton.jit
def unmasked(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.load(x_ptr + offsets))


def test_access_beyond_a_tensor_is_an_illegal_access() -> None:
    x, out = torch.zeros(100, device="cuda"), torch.zeros(128, device="cuda")
    with pytest.raises(IllegalAccessError, match=r"28 of 128 elements of a load .* 0 bytes past the end"):
        unmasked[(1,)](x, out, BLOCK=128)
    with pytest.raises(IllegalAccessError, match="store"):
        unmasked[(1,)](out, x, BLOCK=128)


@triton.jit
def follows_addresses(table_ptr, out_ptr):
    pointer = tl.load(table_ptr).to(tl.pointer_type(tl.float32))
    tl.store(out_ptr, tl.load(pointer))


@triton.jit
def inline_assembly(out_ptr):
    one = tl.full((1,), 1, tl.int32)
    y = tl.inline_asm_elementwise("mov.b32 $0, $1;", "=r,r", [one], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(out_ptr, y.sum())


def test_missing_interpreter_features_are_not_checked() -> None:
    out = torch.zeros(1, dtype=torch.int32, device="cuda")
    with pytest.raises(NotCheckedError, match="inline assembly"):
        inline_assembly[(1,)](out)
    elsewhere = torch.zeros(1)  # held, so that no argument of the launch gets its address
    table = torch.tensor([elsewhere.data_ptr()], dtype=torch.int64)
    with pytest.raises(NotCheckedError, match="pointers"):
        follows_addresses[(1,)](table, torch.zeros(1, device="cuda"))


@triton.jit
def asserting(x_ptr):
    tl.device_assert(tl.load(x_ptr) > 0, "must be positive")


def test_device_assertions_hold_in_debug_launches_only() -> None:
    x = torch.zeros(1, device="cuda")
    asserting[(1,)](x)
    with pytest.raises(AssertionError, match="must be positive"):
        asserting[(1,)](x, debug=True)


def test_launcher_is_put_back() -> None:
    with simulated_cuda("sm_80"):
        assert triton.runtime.driver.active.get_current_target().arch == 80
    assert triton.runtime.driver.active.get_current_target().arch == 90
