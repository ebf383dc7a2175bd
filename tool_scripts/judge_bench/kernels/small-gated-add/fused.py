# mypy: ignore-errors
# ruff: noqa: N803
"""``silu(a) * b + c`` of 4096 x 4096 numbers. In one kernel."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def _kernel(a_ptr, b_ptr, c_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + offsets, mask=mask).to(tl.float32)
    b = tl.load(b_ptr + offsets, mask=mask).to(tl.float32)
    c = tl.load(c_ptr + offsets, mask=mask).to(tl.float32)
    y = a * tl.sigmoid(a) * b + c
    tl.store(y_ptr + offsets, y.to(y_ptr.dtype.element_ty), mask=mask)


class ModelNew(nn.Module):
    """The candidate."""

    def forward(self, a, b, c):
        """One call."""
        y = torch.empty_like(a)
        n = a.numel()
        _kernel[(triton.cdiv(n, 2048),)](a, b, c, y, n, BLOCK=2048)
        return y
