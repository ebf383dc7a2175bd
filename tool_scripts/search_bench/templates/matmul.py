"""A linear layer and GELU, ``gelu(x @ w.T + bias)``; a shape is (rows, outputs, reduced)."""

# mypy: ignore-errors
# ruff: noqa: N803
from __future__ import annotations

import torch
import triton
import triton.language as tl

from tool_scripts.search_bench.templates.launching import Launcher, guarded
from tool_scripts.search_bench.templates.space import Choices, Shape

_SMS = 132
_EPILOGUE_BLOCK = 1024


@triton.jit
def _gelu(value):
    return 0.5 * value * (1.0 + tl.erf(value * 0.7071067811865476))


@triton.jit
def _tile(
    x,
    w,
    M,
    N,
    K,
    row,
    column,
    start,
    end,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
    STAGES: tl.constexpr,
):
    at = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for first in tl.range(start, end, BLOCK_K, num_stages=STAGES):
        inside = first + at < end
        left = tl.load(
            x + row[:, None] * K + (first + at)[None, :], mask=(row < M)[:, None] & inside[None, :], other=0.0
        )
        right = tl.load(
            w + column[None, :] * K + (first + at)[:, None],
            mask=(column < N)[None, :] & inside[:, None],
            other=0.0,
        )
        if PRECISION == "bf16":
            total = tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16), total)
        else:
            total = tl.dot(left, right, total, input_precision=PRECISION)
    return total


@triton.jit
def _place(program, M, N, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, GROUP: tl.constexpr):
    across = tl.cdiv(N, BLOCK_N)
    group = program // (GROUP * across)
    height = tl.minimum(tl.cdiv(M, BLOCK_M) - group * GROUP, GROUP)
    inside = program % (GROUP * across)
    return group * GROUP + inside % height, inside // height


@triton.jit
def _product_kernel(
    x,
    w,
    bias,
    y,
    M,
    N,
    K,
    chunk,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    EPILOGUE: tl.constexpr,
    ATOMIC: tl.constexpr,
    PRECISION: tl.constexpr,
    STAGES: tl.constexpr,
):
    tile_row, tile_column = _place(tl.program_id(0), M, N, BLOCK_M, BLOCK_N, GROUP)
    split = tl.program_id(1)
    row = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
    column = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
    end = tl.minimum(K, (split + 1) * chunk)
    total = _tile(
        x, w, M, N, K, row, column, split * chunk, end, BLOCK_M, BLOCK_N, BLOCK_K, PRECISION, STAGES
    )
    mask = (row < M)[:, None] & (column < N)[None, :]
    if EPILOGUE:
        total = _gelu(total + tl.load(bias + column, mask=column < N, other=0.0)[None, :])
    if ATOMIC:
        tl.atomic_add(y + row[:, None] * N + column[None, :], total, mask=mask)
    else:
        tl.store(y + split * M * N + row[:, None] * N + column[None, :], total, mask=mask)


@triton.jit
def _persistent_kernel(
    x,
    w,
    bias,
    y,
    M,
    N,
    K,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    PRECISION: tl.constexpr,
    STAGES: tl.constexpr,
):
    tiles = tl.cdiv(M, BLOCK_M) * tl.cdiv(N, BLOCK_N)
    for program in range(tl.program_id(0), tiles, tl.num_programs(0)):
        tile_row, tile_column = _place(program, M, N, BLOCK_M, BLOCK_N, 8)
        row = tile_row * BLOCK_M + tl.arange(0, BLOCK_M)
        column = tile_column * BLOCK_N + tl.arange(0, BLOCK_N)
        total = _tile(x, w, M, N, K, row, column, 0, K, BLOCK_M, BLOCK_N, BLOCK_K, PRECISION, STAGES)
        total = _gelu(total + tl.load(bias + column, mask=column < N, other=0.0)[None, :])
        mask = (row < M)[:, None] & (column < N)[None, :]
        tl.store(y + row[:, None] * N + column[None, :], total, mask=mask)


@triton.jit
def _epilogue_kernel(parts, bias, y, size, N, splits, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for split in range(0, splits):
        total += tl.load(parts + split * size + at, mask=at < size, other=0.0)
    tl.store(y + at, _gelu(total + tl.load(bias + at % N)), mask=at < size)


def inputs(shape: Shape, device: str) -> tuple[torch.Tensor, ...]:
    """The rows, the weight as a linear layer has it, the bias."""
    m, n, k = shape
    x, w, bias = (
        guarded((m, k), device).normal_(),
        guarded((n, k), device).normal_(),
        guarded((n,), device).normal_(),
    )
    return x, w.mul_(k**-0.5), bias


def eager(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """What torch does; in float64 it is the reference."""
    return torch.nn.functional.gelu(torch.nn.functional.linear(*tensors))


def candidate(
    structure: str, choices: Choices, tensors: tuple[torch.Tensor, ...], launch: Launcher
) -> torch.Tensor:
    """Run one candidate."""
    x, w, bias = tensors
    (m, k), n = x.shape, w.shape[0]
    y = launch.empty(m, n, like=x)
    if structure == "epilogue_only":
        block = launch.block(choices["BLOCK"])
        parts = torch.mm(x, w.t())
        launch(_epilogue_kernel, (triton.cdiv(m * n, block),), parts, bias, y, m * n, n, 1, BLOCK=block)
        return y
    block_m, block_n = launch.block(choices["BLOCK_M"]), choices["BLOCK_N"]
    tiles = triton.cdiv(m, block_m) * triton.cdiv(n, block_n)
    common = {
        "BLOCK_M": block_m,
        "BLOCK_N": block_n,
        "BLOCK_K": choices["BLOCK_K"],
        "PRECISION": choices["precision"],
        "STAGES": choices["STAGES"],
        "stages": choices["STAGES"],
    }
    if structure == "persistent":
        launch(_persistent_kernel, (min(tiles, _SMS * choices["PER_SM"]),), x, w, bias, y, m, n, k, **common)
        return y
    splits, atomic = choices.get("SPLITS", 1), structure == "split_atomic"
    parts = y
    if splits > 1:
        parts = torch.zeros(1, m, n, device=x.device) if atomic else launch.empty(splits, m, n, like=x)
    launch(
        _product_kernel,
        (tiles, splits),
        x,
        w,
        bias,
        parts,
        m,
        n,
        k,
        triton.cdiv(k, splits),
        GROUP=choices.get("GROUP", 8),
        EPILOGUE=structure == "fused",
        ATOMIC=atomic,
        **common,
    )
    if structure == "torch_epilogue":
        return torch.nn.functional.gelu(y + bias)
    if splits > 1:
        left = 1 if atomic else splits
        grid = (triton.cdiv(m * n, _EPILOGUE_BLOCK),)
        launch(_epilogue_kernel, grid, parts, bias, y, m * n, n, left, BLOCK=_EPILOGUE_BLOCK)
    return y
