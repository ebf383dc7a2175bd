"""Causal attention as a model's forward writes it; a shape is (batch times heads, length, head size)."""

# mypy: ignore-errors
# ruff: noqa: N803, RET505
from __future__ import annotations

import torch
import triton
import triton.language as tl

from tool_scripts.search_bench.templates.launching import Launcher, guarded
from tool_scripts.search_bench.templates.softmax import _exp
from tool_scripts.search_bench.templates.space import Choices, Shape, next_power_of_2


@triton.jit
def _dot(left, right, PRECISION: tl.constexpr):
    if PRECISION == "bf16":
        return tl.dot(left.to(tl.bfloat16), right.to(tl.bfloat16))
    else:
        return tl.dot(left, right, input_precision=PRECISION)


@triton.jit
def _softmax_kernel(
    scores, y, rows, length, scale, ROWS: tl.constexpr, BLOCK: tl.constexpr, EXP2: tl.constexpr
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < length)
    value = tl.load(scores + row * length + column, mask=mask, other=0.0) * scale
    value = tl.where(column <= row % length, value, -float("inf"))
    value = _exp(value - tl.max(value, axis=1)[:, None], EXP2)
    tl.store(y + row * length + column, value / tl.sum(value, axis=1)[:, None], mask=mask)


@triton.jit
def _full_row_kernel(
    q,
    k,
    v,
    y,
    length,
    scale,
    SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    PRECISION: tl.constexpr,
    HEAVY: tl.constexpr,
):
    tile = tl.program_id(0)
    if HEAVY:
        tile = tl.num_programs(0) - 1 - tile
    start = tl.program_id(1) * length * SIZE
    row, key, at = tile * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N), tl.arange(0, SIZE)
    queries = tl.load(q + start + row[:, None] * SIZE + at[None, :])
    keys = tl.load(k + start + key[None, :] * SIZE + at[:, None])
    value = _dot(queries, keys, PRECISION) * scale
    value = tl.where(key[None, :] <= row[:, None], value, -float("inf"))
    value = tl.exp(value - tl.max(value, axis=1)[:, None])
    value = value / tl.sum(value, axis=1)[:, None]
    values = tl.load(v + start + key[:, None] * SIZE + at[None, :])
    tl.store(y + start + row[:, None] * SIZE + at[None, :], _dot(value, values, PRECISION))


@triton.jit
def _visit(
    queries,
    k,
    v,
    total,
    top,
    weight,
    row,
    first,
    last,
    scale,
    SIZE: tl.constexpr,
    BLOCK_N: tl.constexpr,
    MASKED: tl.constexpr,
    EXP2: tl.constexpr,
    PRECISION: tl.constexpr,
    STAGES: tl.constexpr,
):
    at = tl.arange(0, SIZE)
    for start in tl.range(first, last, BLOCK_N, num_stages=STAGES):
        key = start + tl.arange(0, BLOCK_N)
        keys = tl.load(k + key[None, :] * SIZE + at[:, None])
        value = _dot(queries, keys, PRECISION) * scale
        if MASKED:
            value = tl.where(key[None, :] <= row[:, None], value, -1e30)
        higher = tl.maximum(top, tl.max(value, axis=1))
        value = _exp(value - higher[:, None], EXP2)
        shrink = _exp(top - higher, EXP2)
        weight = weight * shrink + tl.sum(value, axis=1)
        values = tl.load(v + key[:, None] * SIZE + at[None, :])
        total = total * shrink[:, None] + _dot(value, values, PRECISION)
        top = higher
    return total, top, weight


@triton.jit
def _flash_kernel(
    q,
    k,
    v,
    y,
    length,
    scale,
    SIZE: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    SKIP: tl.constexpr,
    TWO_LOOPS: tl.constexpr,
    EXP2: tl.constexpr,
    PRECISION: tl.constexpr,
    HEAVY: tl.constexpr,
    STAGES: tl.constexpr,
):
    tile = tl.program_id(0)
    if HEAVY:
        tile = tl.num_programs(0) - 1 - tile
    start = tl.program_id(1) * length * SIZE
    row, at = tile * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, SIZE)
    queries = tl.load(q + start + row[:, None] * SIZE + at[None, :])
    total = tl.zeros((BLOCK_M, SIZE), tl.float32)
    top = tl.full((BLOCK_M,), -1e30, tl.float32)
    weight = tl.zeros((BLOCK_M,), tl.float32)
    last = length
    if SKIP or TWO_LOOPS:
        last = (tile + 1) * BLOCK_M
    first = 0
    if TWO_LOOPS:
        first = tile * BLOCK_M // BLOCK_N * BLOCK_N
        total, top, weight = _visit(
            queries,
            k + start,
            v + start,
            total,
            top,
            weight,
            row,
            0,
            first,
            scale,
            SIZE,
            BLOCK_N,
            False,
            EXP2,
            PRECISION,
            STAGES,
        )
    total, top, weight = _visit(
        queries,
        k + start,
        v + start,
        total,
        top,
        weight,
        row,
        first,
        last,
        scale,
        SIZE,
        BLOCK_N,
        True,
        EXP2,
        PRECISION,
        STAGES,
    )
    tl.store(y + start + row[:, None] * SIZE + at[None, :], total / weight[:, None])


def inputs(shape: Shape, device: str) -> tuple[torch.Tensor, ...]:
    """Queries, keys, values and the mask that eager code keeps in a buffer."""
    q, k, v = (guarded(shape, device).normal_() for _ in range(3))
    return q, k, v, torch.ones(shape[1], shape[1], device=device, dtype=torch.bool).triu_(1)


def eager(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """What torch does; in float64 it is the reference."""
    q, k, v, mask = tensors
    scores = (q @ k.transpose(1, 2)) * q.shape[2] ** -0.5
    return torch.softmax(scores.masked_fill(mask, float("-inf")), dim=-1) @ v


def candidate(
    structure: str, choices: Choices, tensors: tuple[torch.Tensor, ...], launch: Launcher
) -> torch.Tensor:
    """Run one candidate."""
    q, k, v, _ = tensors
    heads, length, size = q.shape
    scale = size**-0.5
    if structure == "softmax_only":
        scores, per = torch.bmm(q, k.transpose(1, 2)), choices["ROWS"]
        weights = launch.empty(heads, length, length, like=q)
        launch(
            _softmax_kernel,
            (triton.cdiv(heads * length, per),),
            scores,
            weights,
            heads * length,
            length,
            scale,
            ROWS=per,
            BLOCK=launch.block(next_power_of_2(length)),
            EXP2=choices["exp"] == "exp2",
        )
        return torch.bmm(weights, v)
    y = launch.empty(heads, length, size, like=q)
    block = launch.block(choices["BLOCK_M"])
    grid = (triton.cdiv(length, block), heads)
    common = {
        "SIZE": size,
        "BLOCK_M": block,
        "PRECISION": choices["precision"],
        "HEAVY": choices["order"] == "heavy_first",
    }
    if structure == "full_row":
        launch(_full_row_kernel, grid, q, k, v, y, length, scale, BLOCK_N=length, **common)
        return y
    exp2 = choices["exp"] == "exp2"
    launch(
        _flash_kernel,
        grid,
        q,
        k,
        v,
        y,
        length,
        scale,
        BLOCK_N=choices["BLOCK_N"],
        SKIP=structure == "flash_skip",
        TWO_LOOPS=structure == "flash_two_loops",
        EXP2=exp2,
        STAGES=choices["STAGES"],
        stages=choices["STAGES"],
        **common,
    )
    return y
