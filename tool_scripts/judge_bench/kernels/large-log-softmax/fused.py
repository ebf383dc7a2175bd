# mypy: ignore-errors
# ruff: noqa: N803
"""Scaled log-softmax over rows of 8192 x 8192 numbers. In one kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, y_ptr, scale, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    x = tl.load(x_ptr + row * columns + offsets, mask=mask, other=-float("inf")).to(tl.float32) * scale
    x -= tl.max(x, axis=0)
    y = x - tl.log(tl.sum(tl.exp(x), axis=0))
    tl.store(y_ptr + row * columns + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    """The candidate."""

    def __init__(self, scale):
        super().__init__()
        self.scale = scale

    def forward(self, x):
        """One call."""
        y = torch.empty_like(x)
        rows, columns = x.shape
        block = triton.next_power_of_2(columns)
        _kernel[(rows,)](x, y, self.scale, columns, BLOCK=block, num_warps=16)
        return y
