"""Kernels give the same results under the interpreter as on a GPU."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import triton
import triton.language as tl
from triton.language.extra import libdevice
from triton.language.extra.cuda import libdevice as cuda_libdevice
from triton.language.extra.libdevice import log1p

pytestmark = pytest.mark.usefixtures("gpu")
Function = Callable[[torch.Tensor], torch.Tensor]
SIZE = 64


@triton.jit
def half_of(x):
    return x * 0.5


@triton.jit
def nested(x):
    return half_of(x) + 1


@triton.jit
def elementwise(x_ptr, out_ptr, CASE: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    y = x
    if CASE == "nested":
        y = nested(x)
    elif CASE == "softmax":
        y = tl.softmax(x)
    elif CASE == "sigmoid":
        y = tl.sigmoid(x) + x.sigmoid()
    elif CASE == "erf":
        y = tl.erf(x) + tl.math.erf(x)
    elif CASE == "libdevice tanh":
        y = libdevice.tanh(x)
    elif CASE == "cuda libdevice tanh":
        y = tl.extra.cuda.libdevice.tanh(x) + cuda_libdevice.tanh(x)
    elif CASE == "libdevice by name":
        y = log1p(tl.abs(x))
    elif CASE == "libdevice pow":
        y = libdevice.pow(tl.abs(x), 2.5)
    elif CASE == "libdevice fast":
        y = libdevice.fast_expf(x)
    elif CASE == "libdevice round":
        y = libdevice.round(x) + libdevice.float2int_rn(x).to(tl.float32)
    elif CASE == "libdevice bits":
        y = libdevice.int_as_float(libdevice.float_as_int(x))
    elif CASE == "rsqrt":
        y = tl.math.rsqrt(tl.abs(x) + 1) + libdevice.rsqrt(tl.abs(x) + 1)
    elif CASE == "sort":
        y = tl.sort(x)
    elif CASE == "cumsum":
        y = tl.cumsum(x, 0)
    elif CASE == "reverse cumsum":
        y = tl.cumsum(x, 0, reverse=True)
    elif CASE == "max with index":
        value, index = tl.max(x, 0, return_indices=True)
        y = tl.zeros((N,), tl.float32) + value + index.to(tl.float32)
    elif CASE == "argmin":
        y = tl.zeros((N,), tl.float32) + tl.argmin(x, 0)
    elif CASE == "xor":
        y = x + tl.xor_sum(offsets, 0)
    elif CASE == "bfloat16":
        b = x.to(tl.bfloat16)
        y = (b * b + b - tl.abs(b)).to(tl.float32) + tl.where(b > 0, 1.0, 0.0)
    elif CASE == "float16":
        h = x.to(tl.float16)
        y = (h * h + h).to(tl.float32)
    elif CASE == "boolean words":
        total = x.sum()
        y = tl.where(x > 0, x, 0)
        if total > 1e9 or (not (total < -1e9) and total == total):
            y = y + 1
    elif CASE == "python min":
        y = tl.zeros((N,), tl.float32) + min(x.sum(), 0.25)
    elif CASE == "loops":
        for i in range(0, 3):
            y += i.to(tl.float32)
        for j in tl.range(0, 4, 2, num_stages=2):
            y += j
        for k in tl.static_range(2):
            y += k
        n = 0
        while n < 3:
            n += 1
        y += n
    elif CASE == "integers":
        y = (offsets // 3 + offsets % 3 + tl.cdiv(offsets, 7)).to(tl.float32)
    elif CASE == "shapes":
        a, b = tl.split(tl.reshape(tl.trans(tl.reshape(x, (2, N // 2))), (N // 2, 2)))
        y = tl.interleave(b, a)
    elif CASE == "constexpr value":
        y = x * N.value
    elif CASE == "gather":
        y = tl.gather(x, N - 1 - offsets, 0)
    tl.store(out_ptr + offsets, y)


def _bfloat16(v: torch.Tensor) -> torch.Tensor:
    b = v.bfloat16()
    return (b * b + b - b.abs()).float() + (b > 0)


EXPECTED: dict[str, Function] = {
    "nested": lambda v: v * 0.5 + 1,
    "softmax": lambda v: v.softmax(0),
    "sigmoid": lambda v: 2 * v.sigmoid(),
    "erf": lambda v: 2 * torch.erf(v),
    "libdevice tanh": torch.tanh,
    "cuda libdevice tanh": lambda v: 2 * torch.tanh(v),
    "libdevice by name": lambda v: torch.log1p(v.abs()),
    "libdevice pow": lambda v: v.abs() ** 2.5,
    "libdevice fast": torch.exp,
    "libdevice round": lambda v: v.round() * 2,
    "libdevice bits": lambda v: v,
    "rsqrt": lambda v: 2 * (v.abs() + 1).rsqrt(),
    "sort": lambda v: v.sort().values,
    "cumsum": lambda v: v.cumsum(0),
    "reverse cumsum": lambda v: v.flip(0).cumsum(0).flip(0),
    "max with index": lambda v: (v.max() + v.argmax()).expand(SIZE),
    "argmin": lambda v: v.argmin().float().expand(SIZE),
    "xor": lambda v: v,
    "bfloat16": _bfloat16,
    "float16": lambda v: (v.half() * v.half() + v.half()).float(),
    "boolean words": lambda v: v.relu() + 1,
    "python min": lambda v: v.sum().clamp(max=0.25).expand(SIZE),
    "loops": lambda v: v + 3 + 2 + 1 + 3,
    "integers": lambda v: (lambda i: i // 3 + i % 3 + (i + 6) // 7)(torch.arange(SIZE)).float(),
    "shapes": lambda v: v.reshape(2, -1).t().reshape(-1, 2).flip(1).reshape(-1),
    "constexpr value": lambda v: v * SIZE,
    "gather": lambda v: v.flip(0),
}


@pytest.mark.parametrize("case", EXPECTED)
def test_language_feature(case: str) -> None:
    torch.manual_seed(1)
    x = torch.randn(SIZE, device="cuda")
    out = torch.full_like(x, float("nan"))
    elementwise[(1,)](x, out, case, N=SIZE)
    torch.testing.assert_close(out, EXPECTED[case](x), rtol=1e-5, atol=1e-5)


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    PRECISION: tl.constexpr,
    BLOCK: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    cols = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inner = tl.arange(0, BLOCK)
    a_ptrs = a_ptr + rows[:, None] * stride_am + inner[None, :] * stride_ak
    b_ptrs = b_ptr + inner[:, None] * stride_bk + cols[None, :] * stride_bn
    acc = tl.zeros((BLOCK, BLOCK), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BLOCK)):
        left = K - k * BLOCK
        a = tl.load(a_ptrs, mask=(rows[:, None] < M) & (inner[None, :] < left), other=0.0)
        b = tl.load(b_ptrs, mask=(inner[:, None] < left) & (cols[None, :] < N), other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION)
        a_ptrs += BLOCK * stride_ak
        b_ptrs += BLOCK * stride_bk
    mask = (rows[:, None] < M) & (cols[None, :] < N)
    c_ptrs = c_ptr + rows[:, None] * stride_cm + cols[None, :] * stride_cn
    tl.store(c_ptrs, acc.to(c_ptr.dtype.element_ty), mask=mask)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16])
@pytest.mark.parametrize("precision", ["ieee", "tf32", "tf32x3"])
def test_matmul_of_uneven_sizes(dtype: torch.dtype, precision: str) -> None:
    torch.manual_seed(2)
    a, b = torch.randn(50, 40, dtype=dtype), torch.randn(45, 40, dtype=dtype).t()
    c = torch.empty(50, 45, dtype=dtype, device="cuda")
    matmul[(2, 2)](a, b, c, 50, 45, 40, *a.stride(), *b.stride(), *c.stride(), precision, BLOCK=32)
    torch.testing.assert_close(c, (a.float() @ b.float()).to(dtype))


@triton.jit
def bfloat16_constants(x_ptr, out_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    x = tl.load(x_ptr + offsets)
    ones = tl.full((N,), 1.0, dtype=tl.bfloat16)
    tl.store(out_ptr + offsets, tl.maximum(x * 2.5 + ones, 0.5) - tl.zeros_like(x))


def test_bfloat16_meets_constants() -> None:
    torch.manual_seed(4)
    x = torch.randn(SIZE, dtype=torch.bfloat16, device="cuda")
    out = torch.empty_like(x)
    bfloat16_constants[(1,)](x, out, SIZE)
    torch.testing.assert_close(out, (x * 2.5 + 1.0).clamp(min=0.5))


@triton.jit
def tile_copy(x_ptr, out_ptr, M, N, BLOCK: tl.constexpr):
    source = tl.make_tensor_descriptor(x_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
    target = tl.make_tensor_descriptor(out_ptr, shape=[M, N], strides=[N, 1], block_shape=[BLOCK, BLOCK])
    row, col = tl.program_id(0) * BLOCK, tl.program_id(1) * BLOCK
    target.store([row, col], source.load([row, col]) * 2)


def test_tensor_descriptors() -> None:
    x = torch.randn(40, 48, device="cuda")
    out = torch.zeros_like(x)
    tile_copy[(2, 2)](x, out, 40, 48, BLOCK=32)
    torch.testing.assert_close(out, x * 2)


@triton.jit
def atomics(x_ptr, sum_ptr, count_ptr, max_ptr, N, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < N
    x = tl.load(x_ptr + offsets, mask=mask, other=-100.0)
    tl.atomic_add(sum_ptr, tl.sum(tl.where(mask, x, 0.0)).to(sum_ptr.dtype.element_ty))
    tl.atomic_add(count_ptr + offsets % 4, 1, mask=mask)
    tl.atomic_max(max_ptr, tl.max(x, 0))
    tl.atomic_cas(count_ptr + 4, 0, 7)
    tl.debug_barrier()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_atomics(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    x = torch.randn(100, device="cuda")
    total, peak = torch.zeros(1, dtype=dtype), torch.full((1,), -1e9)
    count = torch.zeros(5, dtype=torch.int32)
    atomics[(4,)](x, total, count, peak, 100, BLOCK=32)
    torch.testing.assert_close(total.float(), x.sum(0, keepdim=True), rtol=2e-3, atol=2e-2)
    assert count.tolist() == [25, 25, 25, 25, 7]
    assert peak.item() == x.max().item()


@triton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, a2 * b1 + b2


@triton.jit
def product(a, b):
    return a * b


@triton.jit
def recurrence(a_ptr, b_ptr, out_ptr, product_ptr, N: tl.constexpr):
    offsets = tl.arange(0, N)
    a = tl.load(a_ptr + offsets)
    _, state = tl.associative_scan((a, tl.load(b_ptr + offsets)), 0, affine)
    tl.store(out_ptr + offsets, state)
    tl.store(product_ptr, tl.reduce(a, 0, product))


def test_scan_and_reduce_with_functions_of_the_candidate() -> None:
    a, b = torch.rand(SIZE) + 0.5, torch.rand(SIZE)
    out, total = torch.empty(SIZE, device="cuda"), torch.empty(1, device="cuda")
    recurrence[(1,)](a, b, out, total, SIZE)
    state, expected = 0.0, []
    for factor, term in zip(a.tolist(), b.tolist(), strict=True):
        state = factor * state + term
        expected.append(state)
    torch.testing.assert_close(out, torch.tensor(expected))
    torch.testing.assert_close(total, a.prod(0, keepdim=True))


@triton.jit
def random_numbers(out_ptr, normal_ptr, seed, N: tl.constexpr):
    offsets = tl.arange(0, N)
    tl.store(out_ptr + offsets, tl.rand(seed, offsets))
    tl.store(normal_ptr + offsets, tl.randn(seed, offsets))


def test_random_numbers_are_distributed_as_asked() -> None:
    uniform, normal = torch.empty(1024), torch.empty(1024)
    random_numbers[(1,)](uniform, normal, 42, 1024)
    assert 0.45 < uniform.mean() < 0.55
    assert 0 <= uniform.min() < uniform.max() < 1
    assert abs(normal.mean()) < 0.1
    assert 0.9 < normal.std() < 1.1


def test_kernel_may_use_names_of_an_enclosing_function() -> None:
    WIDTH = tl.constexpr(8)

    @triton.jit
    def fill(out_ptr):
        tl.store(out_ptr + tl.arange(0, WIDTH), 3.0)

    out = torch.zeros(8, device="cuda")
    fill[(1,)](out)
    assert out.tolist() == [3.0] * 8


@triton.jit
def scale_by(out_ptr, factor, n, flag, nothing, N: tl.constexpr):
    value = factor.to(tl.float32) * n
    if nothing is None and flag:
        value = value + 1
    tl.store(out_ptr + tl.arange(0, N), value)


@pytest.mark.parametrize("n", [1, 2, 2**33])
def test_scalar_arguments_of_each_specialisation(n: int) -> None:
    out = torch.zeros(2, device="cuda")
    scale_by[(1,)](out, 0.5, n, True, None, N=2)
    torch.testing.assert_close(out, torch.full((2,), 0.5 * n + 1))
