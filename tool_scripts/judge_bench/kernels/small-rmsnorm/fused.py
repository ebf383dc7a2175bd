# mypy: ignore-errors
# ruff: noqa: N803
"""RMS norm over rows of 4096 x 4096 numbers. In one kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, w_ptr, y_ptr, features, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < features
    x = tl.load(x_ptr + row * features + offsets, mask=mask, other=0.0).to(tl.float32)
    w = tl.load(w_ptr + offsets, mask=mask).to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x, axis=0) / features + 1e-6) * w
    tl.store(y_ptr + row * features + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    """The candidate."""

    def __init__(self, features):
        super().__init__()
        self.weight = nn.Parameter(1.0 + 0.1 * torch.randn(features))

    def forward(self, x):
        """One call."""
        y = torch.empty_like(x)
        rows, features = x.shape
        block = triton.next_power_of_2(features)
        _kernel[(rows,)](x, self.weight, y, features, BLOCK=block, num_warps=8)
        return y
