# mypy: ignore-errors
# ruff: noqa: N803
"""Residual and layer norm over rows of 12288 x 4096 numbers. In one kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, r_ptr, w_ptr, b_ptr, y_ptr, features, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    offsets = tl.arange(0, BLOCK)
    mask = offsets < features
    x = tl.load(x_ptr + row * features + offsets, mask=mask, other=0.0).to(tl.float32)
    x += tl.load(r_ptr + row * features + offsets, mask=mask, other=0.0).to(tl.float32)
    mean = tl.sum(x, axis=0) / features
    centred = tl.where(mask, x - mean, 0.0)
    variance = tl.sum(centred * centred, axis=0) / features
    w = tl.load(w_ptr + offsets, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask).to(tl.float32)
    y = centred * tl.rsqrt(variance + eps) * w + b
    tl.store(y_ptr + row * features + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    """The candidate."""

    def __init__(self, features):
        super().__init__()
        self.norm = nn.LayerNorm(features)

    def forward(self, x, residual):
        """One call."""
        y = torch.empty_like(x)
        rows, features = x.shape
        norm = self.norm
        block = triton.next_power_of_2(features)
        _kernel[(rows,)](x, residual, norm.weight, norm.bias, y, features, norm.eps, BLOCK=block, num_warps=8)
        return y
