# mypy: ignore-errors
# ruff: noqa: N803
"""Inner products of rows of 4096 x 4096 numbers. In one kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _kernel(a_ptr, b_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < columns
    a = tl.load(a_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    b = tl.load(b_ptr + row * columns + offsets, mask=mask, other=0.0).to(tl.float32)
    tl.store(y_ptr + row, tl.sum(a * b, axis=0).to(y_ptr.dtype.element_ty))


class ModelNew(nn.Module):
    """The candidate."""

    def forward(self, a, b):
        """One call."""
        rows, columns = a.shape
        y = torch.empty(rows, device=a.device, dtype=a.dtype)
        _kernel[(rows,)](a, b, y, columns, BLOCK=triton.next_power_of_2(columns), num_warps=8)
        return y
