"""Softmax over the rows of a matrix; a shape is (rows, columns)."""

# mypy: ignore-errors
# ruff: noqa: N803, RET505
from __future__ import annotations

import torch
import triton
import triton.language as tl

from tool_scripts.search_bench.templates.launching import Launcher, guarded
from tool_scripts.search_bench.templates.space import Choices, Shape, next_power_of_2

_SMS = 132


@triton.jit
def _exp(x, EXP2: tl.constexpr):
    if EXP2:
        return tl.exp2(x * 1.4426950408889634)
    else:
        return tl.exp(x)


@triton.jit
def _load(pointers, mask, fill, MASK: tl.constexpr, CACHE: tl.constexpr):
    if MASK:
        return tl.load(pointers, mask=mask, other=fill, eviction_policy=CACHE)
    else:
        return tl.load(pointers, eviction_policy=CACHE)


@triton.jit
def _store(pointers, value, mask, MASK: tl.constexpr):
    if MASK:
        tl.store(pointers, value, mask=mask)
    else:
        tl.store(pointers, value)


@triton.jit
def _rows_kernel(
    x,
    y,
    rows,
    columns,
    ROWS: tl.constexpr,
    BLOCK: tl.constexpr,
    EXP2: tl.constexpr,
    MASK: tl.constexpr,
    CACHE: tl.constexpr,
):
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    mask = (row < rows) & (column < columns)
    at = row * columns + column
    value = _load(x + at, mask, -float("inf"), MASK, CACHE)
    value = _exp(value - tl.max(value, axis=1)[:, None], EXP2)
    _store(y + at, value / tl.sum(value, axis=1)[:, None], mask, MASK)


@triton.jit
def _one_pass_kernel(
    x, y, columns, BLOCK: tl.constexpr, EXP2: tl.constexpr, MASK: tl.constexpr, CACHE: tl.constexpr
):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    at = tl.program_id(0) * columns + column
    value = _load(x + at, mask, -float("inf"), MASK, CACHE)
    value = _exp(value - tl.max(value, axis=0), EXP2)
    _store(y + at, value / tl.sum(value, axis=0), mask, MASK)


@triton.jit
def _persistent_kernel(
    x,
    y,
    rows,
    columns,
    BLOCK: tl.constexpr,
    EXP2: tl.constexpr,
    MASK: tl.constexpr,
    CACHE: tl.constexpr,
    STAGES: tl.constexpr,
):
    column = tl.arange(0, BLOCK)
    mask = column < columns
    for row in tl.range(tl.program_id(0), rows, tl.num_programs(0), num_stages=STAGES):
        at = row * columns + column
        value = _load(x + at, mask, -float("inf"), MASK, CACHE)
        value = _exp(value - tl.max(value, axis=0), EXP2)
        _store(y + at, value / tl.sum(value, axis=0), mask, MASK)


@triton.jit
def _online_kernel(
    x,
    y,
    columns,
    BLOCK: tl.constexpr,
    EXP2: tl.constexpr,
    MASK: tl.constexpr,
    CACHE: tl.constexpr,
    STAGES: tl.constexpr,
):
    start = tl.program_id(0) * columns
    top = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + start + column, column < columns, -float("inf"), MASK, CACHE)
        higher = tl.maximum(top, value)
        total = total * _exp(top - higher, EXP2) + _exp(value - higher, EXP2)
        top = higher
    highest = tl.max(top, axis=0)
    scale = 1.0 / tl.sum(total * _exp(top - highest, EXP2), axis=0)
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + start + column, column < columns, -float("inf"), MASK, CACHE)
        _store(y + start + column, _exp(value - highest, EXP2) * scale, column < columns, MASK)


@triton.jit
def _three_pass_kernel(
    x,
    y,
    columns,
    BLOCK: tl.constexpr,
    EXP2: tl.constexpr,
    MASK: tl.constexpr,
    CACHE: tl.constexpr,
    STAGES: tl.constexpr,
):
    start = tl.program_id(0) * columns
    highest = -float("inf")
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + start + column, column < columns, -float("inf"), MASK, CACHE)
        highest = tl.maximum(highest, tl.max(value, axis=0))
    total = 0.0
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + start + column, column < columns, -float("inf"), MASK, CACHE)
        total += tl.sum(_exp(value - highest, EXP2), axis=0)
    for first in tl.range(0, columns, BLOCK, num_stages=STAGES):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + start + column, column < columns, -float("inf"), MASK, CACHE)
        _store(y + start + column, _exp(value - highest, EXP2) / total, column < columns, MASK)


@triton.jit
def _partial_kernel(
    x, tops, totals, columns, chunk, BLOCK: tl.constexpr, EXP2: tl.constexpr, MASK: tl.constexpr
):
    row, split = tl.program_id(0), tl.program_id(1)
    end = tl.minimum(columns, (split + 1) * chunk)
    top = tl.full((BLOCK,), -1e30, tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(split * chunk, end, BLOCK):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + row * columns + column, column < end, -float("inf"), MASK, "")
        higher = tl.maximum(top, value)
        total = total * _exp(top - higher, EXP2) + _exp(value - higher, EXP2)
        top = higher
    highest = tl.max(top, axis=0)
    at = row * tl.num_programs(1) + split
    tl.store(tops + at, highest)
    tl.store(totals + at, tl.sum(total * _exp(top - highest, EXP2), axis=0))


@triton.jit
def _apply_kernel(
    x,
    y,
    tops,
    totals,
    columns,
    chunk,
    SPLITS: tl.constexpr,
    BLOCK: tl.constexpr,
    EXP2: tl.constexpr,
    MASK: tl.constexpr,
):
    row, split = tl.program_id(0), tl.program_id(1)
    parts = row * SPLITS + tl.arange(0, SPLITS)
    top = tl.load(tops + parts)
    highest = tl.max(top, axis=0)
    scale = 1.0 / tl.sum(tl.load(totals + parts) * _exp(top - highest, EXP2), axis=0)
    end = tl.minimum(columns, (split + 1) * chunk)
    for first in range(split * chunk, end, BLOCK):
        column = first + tl.arange(0, BLOCK)
        value = _load(x + row * columns + column, column < end, -float("inf"), MASK, "")
        _store(y + row * columns + column, _exp(value - highest, EXP2) * scale, column < end, MASK)


@triton.jit
def _exp_kernel(x, tops, y, size, columns, BLOCK: tl.constexpr, EXP2: tl.constexpr, MASK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = _load(x + at, at < size, 0.0, MASK, "")
    top = tl.load(tops + at // columns, mask=at < size, other=0.0)
    _store(y + at, _exp(value - top, EXP2), at < size, MASK)


def inputs(shape: Shape, device: str) -> tuple[torch.Tensor, ...]:
    """One matrix of normal numbers."""
    return (guarded(shape, device).normal_(),)


def eager(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """What torch does; in float64 it is the reference."""
    return torch.softmax(tensors[0], dim=1)


def candidate(
    structure: str, choices: Choices, tensors: tuple[torch.Tensor, ...], launch: Launcher
) -> torch.Tensor:
    """Run one candidate."""
    (x,) = tensors
    rows, columns = x.shape
    y = launch.empty(rows, columns, like=x)
    common = {"EXP2": choices["exp"] == "exp2", "MASK": launch.masked}
    cache = {"CACHE": "evict_first" if choices.get("cache") == "evict_first" else ""}
    whole = launch.block(next_power_of_2(columns))
    if structure == "one_pass":
        launch(_one_pass_kernel, (rows,), x, y, columns, BLOCK=whole, **common, **cache)
    elif structure == "multi_row":
        per = choices["ROWS"]
        launch(
            _rows_kernel,
            (triton.cdiv(rows, per),),
            x,
            y,
            rows,
            columns,
            ROWS=per,
            BLOCK=whole,
            **common,
            **cache,
        )
    elif structure == "persistent":
        grid = (min(rows, _SMS * choices["PER_SM"]),)
        stages = choices["STAGES"]
        launch(
            _persistent_kernel,
            grid,
            x,
            y,
            rows,
            columns,
            BLOCK=whole,
            STAGES=stages,
            stages=stages,
            **common,
            **cache,
        )
    elif structure in ("online", "three_pass"):
        kernel = _online_kernel if structure == "online" else _three_pass_kernel
        block, stages = launch.block(choices["BLOCK"]), choices["STAGES"]
        launch(kernel, (rows,), x, y, columns, BLOCK=block, STAGES=stages, stages=stages, **common, **cache)
    elif structure == "split":
        splits, block = choices["SPLITS"], launch.block(choices["BLOCK"])
        chunk = triton.cdiv(columns, splits)
        tops, totals = launch.empty(rows, splits, like=x), launch.empty(rows, splits, like=x)
        launch(_partial_kernel, (rows, splits), x, tops, totals, columns, chunk, BLOCK=block, **common)
        launch(
            _apply_kernel,
            (rows, splits),
            x,
            y,
            tops,
            totals,
            columns,
            chunk,
            SPLITS=splits,
            BLOCK=block,
            **common,
        )
    else:  # torch_parts
        block = launch.block(choices["BLOCK"])
        tops = x.amax(dim=1)
        launch(
            _exp_kernel,
            (triton.cdiv(x.numel(), block),),
            x,
            tops,
            y,
            x.numel(),
            columns,
            BLOCK=block,
            **common,
        )
        y /= y.sum(dim=1, keepdim=True)
    return y
