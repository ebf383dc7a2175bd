"""Sum of squares over the middle axis; a shape is (outer, reduced, inner)."""

# mypy: ignore-errors
# ruff: noqa: N803
from __future__ import annotations

import torch
import triton
import triton.language as tl

from tool_scripts.search_bench.templates.launching import Launcher, guarded
from tool_scripts.search_bench.templates.space import Choices, Shape

_LAST_BLOCK = 64  # outputs that a program of the second stage sums


@triton.jit
def _sum_kernel(
    x,
    y,
    reduced,
    inner,
    chunk,
    outputs,
    BLOCK_R: tl.constexpr,
    BLOCK_I: tl.constexpr,
    EACH: tl.constexpr,
    ATOMIC: tl.constexpr,
    STAGES: tl.constexpr,
):
    outer, split = tl.program_id(0), tl.program_id(2)
    column = tl.program_id(1) * BLOCK_I + tl.arange(0, BLOCK_I)
    inside = column < inner
    end = tl.minimum(reduced, (split + 1) * chunk)
    tile = tl.zeros((BLOCK_R, BLOCK_I), tl.float32)
    total = tl.zeros((BLOCK_I,), tl.float32)
    for first in tl.range(split * chunk, end, BLOCK_R, num_stages=STAGES):
        row = first + tl.arange(0, BLOCK_R)
        mask = (row < end)[:, None] & inside[None, :]
        value = tl.load(x + (outer * reduced + row)[:, None] * inner + column[None, :], mask=mask, other=0.0)
        if EACH:
            total += tl.sum(value * value, axis=0)
        else:
            tile += value * value
    if not EACH:
        total = tl.sum(tile, axis=0)
    if ATOMIC:
        tl.atomic_add(y + outer * inner + column, total, mask=inside)
    else:
        tl.store(y + split * outputs + outer * inner + column, total, mask=inside)


@triton.jit
def _last_kernel(parts, y, splits, outputs, BLOCK_S: tl.constexpr, BLOCK_I: tl.constexpr):
    column = tl.program_id(0) * BLOCK_I + tl.arange(0, BLOCK_I)
    total = tl.zeros((BLOCK_S, BLOCK_I), tl.float32)
    for first in range(0, splits, BLOCK_S):
        row = first + tl.arange(0, BLOCK_S)
        mask = (row < splits)[:, None] & (column < outputs)[None, :]
        total += tl.load(parts + row[:, None] * outputs + column[None, :], mask=mask, other=0.0)
    tl.store(y + column, tl.sum(total, axis=0), mask=column < outputs)


@triton.jit
def _square_kernel(x, y, size, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + at, mask=at < size, other=0.0)
    tl.store(y + at, value * value, mask=at < size)


def inputs(shape: Shape, device: str) -> tuple[torch.Tensor, ...]:
    """One tensor of normal numbers."""
    return (guarded(shape, device).normal_(),)


def eager(tensors: tuple[torch.Tensor, ...]) -> torch.Tensor:
    """What torch does; in float64 it is the reference."""
    (x,) = tensors
    return (x * x).sum(dim=1)


def candidate(
    structure: str, choices: Choices, tensors: tuple[torch.Tensor, ...], launch: Launcher
) -> torch.Tensor:
    """Run one candidate."""
    (x,) = tensors
    outer, reduced, inner = x.shape
    if structure == "torch_sum":
        y, block = launch.empty(outer, reduced, inner, like=x), launch.block(choices["BLOCK"])
        launch(_square_kernel, (triton.cdiv(x.numel(), block),), x, y, x.numel(), BLOCK=block)
        return y.sum(dim=1)
    splits = choices.get("SPLITS", 1)
    rows, columns = launch.block(choices["BLOCK_R"]), choices["BLOCK_I"]
    grid = (outer, triton.cdiv(inner, columns), splits)
    atomic = structure == "atomic"
    if atomic or structure == "one_stage":
        y = torch.zeros(1, outer, inner, device=x.device) if atomic else launch.empty(1, outer, inner, like=x)
    else:
        y = launch.empty(splits, outer, inner, like=x)
    launch(
        _sum_kernel,
        grid,
        x,
        y,
        reduced,
        inner,
        triton.cdiv(reduced, splits),
        outer * inner,
        BLOCK_R=rows,
        BLOCK_I=columns,
        EACH=choices["accumulate"] == "each",
        ATOMIC=atomic,
        STAGES=choices["STAGES"],
        stages=choices["STAGES"],
    )
    if structure == "torch_second":
        return y.sum(dim=0)
    if structure == "two_stage":
        parts, y = y, launch.empty(1, outer, inner, like=x)
        grid = (triton.cdiv(outer * inner, _LAST_BLOCK),)
        launch(
            _last_kernel,
            grid,
            parts,
            y,
            splits,
            outer * inner,
            BLOCK_S=max(2, min(splits, 32)),
            BLOCK_I=_LAST_BLOCK,
        )
    return y[0]
