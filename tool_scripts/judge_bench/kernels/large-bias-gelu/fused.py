# mypy: ignore-errors
# ruff: noqa: N803
"""Bias and exact GELU of 8192 x 8192 numbers. In one kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _kernel(x_ptr, bias_ptr, y_ptr, features, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = columns < features
    x = tl.load(x_ptr + row * features + columns, mask=mask).to(tl.float32)
    x += tl.load(bias_ptr + columns, mask=mask).to(tl.float32)
    y = 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476))
    tl.store(y_ptr + row * features + columns, y.to(y_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    """The candidate."""

    def __init__(self, features):
        super().__init__()
        self.bias = nn.Parameter(0.1 * torch.randn(features))

    def forward(self, x):
        """One call."""
        y = torch.empty_like(x)
        rows, features = x.shape
        _kernel[(rows, triton.cdiv(features, 2048))](x, self.bias, y, features, BLOCK=2048)
        return y
