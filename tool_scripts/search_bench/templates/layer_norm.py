"""Layer norm with weight and bias over the rows of a matrix; a shape is (rows, columns)."""

# mypy: ignore-errors
# ruff: noqa: N803
from __future__ import annotations

import torch
import triton
import triton.language as tl

from tool_scripts.search_bench.templates.launching import Launcher, guarded
from tool_scripts.search_bench.templates.softmax import _load, _store
from tool_scripts.search_bench.templates.space import Choices, Shape, next_power_of_2

_EPS = tl.constexpr(1e-5)


@triton.jit
def _rows_kernel(
    x,
    weight,
    bias,
    y,
    rows,
    columns,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    CENTRED: tl.constexpr,
    MASK: tl.constexpr,
    CACHE: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    at = row * columns + column
    value = _load(x + at, mask, 0.0, MASK, CACHE)
    mean = tl.sum(value, axis=1)[:, None] / columns
    if CENTRED:
        centred = tl.where(mask, value - mean, 0.0)
        variance = tl.sum(centred * centred, axis=1)[:, None] / columns
    else:
        variance = tl.sum(value * value, axis=1)[:, None] / columns - mean * mean
    w = _load(weight + column, column < columns, 0.0, MASK, "")
    b = _load(bias + column, column < columns, 0.0, MASK, "")
    _store(y + at, (value - mean) * tl.rsqrt(variance + _EPS) * w + b, mask, MASK)


@triton.jit
def _two_pass_kernel(
    x,
    weight,
    bias,
    y,
    columns,
    BLOCK: tl.constexpr,
    MASK: tl.constexpr,
    CACHE: tl.constexpr,
    STAGES: tl.constexpr,
):
    start = tl.program_id(0) * columns
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + start + column, column < columns, 0.0, MASK, CACHE)
        total += value
        squares += value * value
    mean = tl.sum(total, axis=0) / columns
    scale = tl.rsqrt(tl.sum(squares, axis=0) / columns - mean * mean + _EPS)
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + start + column, column < columns, 0.0, MASK, CACHE)
        w = _load(weight + column, column < columns, 0.0, MASK, "")
        b = _load(bias + column, column < columns, 0.0, MASK, "")
        _store(y + start + column, (value - mean) * scale * w + b, column < columns, MASK)


@triton.jit
def _three_pass_kernel(
    x,
    weight,
    bias,
    y,
    columns,
    BLOCK: tl.constexpr,
    MASK: tl.constexpr,
    CACHE: tl.constexpr,
    STAGES: tl.constexpr,
):
    start = tl.program_id(0) * columns
    total = 0.0
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        total += tl.sum(_load(x + start + column, column < columns, 0.0, MASK, CACHE), axis=0)
    mean = total / columns
    squares = 0.0
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + start + column, column < columns, 0.0, MASK, CACHE)
        centred = tl.where(column < columns, value - mean, 0.0)
        squares += tl.sum(centred * centred, axis=0)
    scale = tl.rsqrt(squares / columns + _EPS)
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + start + column, column < columns, 0.0, MASK, CACHE)
        w = _load(weight + column, column < columns, 0.0, MASK, "")
        b = _load(bias + column, column < columns, 0.0, MASK, "")
        _store(y + start + column, (value - mean) * scale * w + b, column < columns, MASK)


@triton.jit
def _partial_kernel(
    x,
    sums,
    columns,
    chunk,
    ATOMIC: tl.constexpr,
    BLOCK: tl.constexpr,
    MASK: tl.constexpr,
    CACHE: tl.constexpr,
):
    row, split = tl.program_id(0), tl.program_id(1)
    end = tl.minimum(columns, (split + 1) * chunk)
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for first in range(split * chunk, end, BLOCK):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + row * columns + column, column < end, 0.0, MASK, CACHE)
        total += value
        squares += value * value
    if ATOMIC:
        tl.atomic_add(sums + row * 2, tl.sum(total, axis=0))
        tl.atomic_add(sums + row * 2 + 1, tl.sum(squares, axis=0))
    else:
        at = (row * tl.num_programs(1) + split) * 2
        tl.store(sums + at, tl.sum(total, axis=0))
        tl.store(sums + at + 1, tl.sum(squares, axis=0))


@triton.jit
def _apply_kernel(
    x,
    sums,
    weight,
    bias,
    y,
    columns,
    chunk,
    PARTS: tl.constexpr,
    BLOCK: tl.constexpr,
    MASK: tl.constexpr,
    CACHE: tl.constexpr,
):
    row, split = tl.program_id(0), tl.program_id(1)
    parts = (row * PARTS + tl.arange(0, PARTS)) * 2
    mean = tl.sum(tl.load(sums + parts), axis=0) / columns
    scale = tl.rsqrt(tl.sum(tl.load(sums + parts + 1), axis=0) / columns - mean * mean + _EPS)
    end = tl.minimum(columns, (split + 1) * chunk)
    for first in range(split * chunk, end, BLOCK):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + row * columns + column, column < end, 0.0, MASK, CACHE)
        w = _load(weight + column, column < end, 0.0, MASK, "")
        b = _load(bias + column, column < end, 0.0, MASK, "")
        _store(y + row * columns + column, (value - mean) * scale * w + b, column < end, MASK)


@triton.jit
def _normalise_kernel(
    x,
    means,
    variances,
    weight,
    bias,
    y,
    size,
    columns,
    AFFINE: tl.constexpr,
    BLOCK: tl.constexpr,
    MASK: tl.constexpr,
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < size
    value = _load(x + at, inside, 0.0, MASK, "")
    mean = tl.load(means + at // columns, mask=inside, other=0.0)
    value = (value - mean) * tl.rsqrt(tl.load(variances + at // columns, mask=inside, other=1.0) + _EPS)
    if AFFINE:
        column = at % columns
        value = value * tl.load(weight + column) + tl.load(bias + column)
    _store(y + at, value, inside, MASK)


def inputs(shape: Shape, device: str) -> tuple[torch.Tensor, ...]:
    """A matrix, the weight and the bias of its columns."""
    return (
        guarded(shape, device).normal_(),
        guarded(shape[1:], device).normal_(),
        guarded(shape[1:], device).normal_(),
    )


def eager(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """What torch does; in float64 it is the reference."""
    x, weight, bias = tensors
    return torch.nn.functional.layer_norm(x, x.shape[1:], weight, bias, 1e-5)


def candidate(
    structure: str, choices: Choices, tensors: tuple[torch.Tensor, ...], launch: Launcher
) -> torch.Tensor:
    """Run one candidate."""
    x, weight, bias = tensors
    rows, columns = x.shape
    y = launch.empty(rows, columns, like=x)
    common = {"MASK": launch.masked}
    cache = {"CACHE": "evict_first" if choices.get("cache") == "evict_first" else ""}
    if structure in ("one_pass", "multi_row"):
        per = choices.get("ROWS", 1)
        launch(
            _rows_kernel,
            (triton.cdiv(rows, per),),
            x,
            weight,
            bias,
            y,
            rows,
            columns,
            ROWS=per,
            BLOCK=launch.block(next_power_of_2(columns)),
            CENTRED=choices["variance"] == "centred",
            **common,
            **cache,
        )
    elif structure in ("two_pass", "three_pass"):
        kernel = _two_pass_kernel if structure == "two_pass" else _three_pass_kernel
        block, stages = launch.block(choices["BLOCK"]), choices["STAGES"]
        launch(
            kernel,
            (rows,),
            x,
            weight,
            bias,
            y,
            columns,
            BLOCK=block,
            STAGES=stages,
            stages=stages,
            **common,
            **cache,
        )
    elif structure in ("split", "atomic"):
        atomic, splits, block = structure == "atomic", choices["SPLITS"], launch.block(choices["BLOCK"])
        grid, chunk, parts = (rows, splits), triton.cdiv(columns, splits), 1 if atomic else splits
        sums = torch.zeros(rows, 2, device=x.device) if atomic else launch.empty(rows, splits, 2, like=x)
        launch(_partial_kernel, grid, x, sums, columns, chunk, ATOMIC=atomic, BLOCK=block, **common, **cache)
        launch(
            _apply_kernel,
            grid,
            x,
            sums,
            weight,
            bias,
            y,
            columns,
            chunk,
            PARTS=parts,
            BLOCK=block,
            **common,
            **cache,
        )
    else:  # torch_statistics
        block, affine = launch.block(choices["BLOCK"]), choices["affine"] == "fused"
        variances, means = torch.var_mean(x, dim=1, correction=0)
        launch(
            _normalise_kernel,
            (triton.cdiv(x.numel(), block),),
            x,
            means,
            variances,
            weight,
            bias,
            y,
            x.numel(),
            columns,
            AFFINE=affine,
            BLOCK=block,
            **common,
        )
        if not affine:
            y = y * weight + bias
    return y
