# mypy: ignore-errors
# ruff: noqa: F401
"""Matrix products for the kernels of this corpus: every kernel's source starts with this file."""

import torch
import torch.nn as nn
import triton
import triton.language as tl

OPERANDS = tl.float32


@triton.jit
def _matmul_kernel(
    a_ptr,
    b_ptr,
    bias_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_ab,
    stride_am,
    stride_ak,
    stride_bb,
    stride_bk,
    stride_bn,
    HAS_BIAS: tl.constexpr,
    OPERANDS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
):
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    batch = tl.program_id(2).to(tl.int64)
    a_rows = a_ptr + batch * stride_ab + rows[:, None] * stride_am
    b_columns = b_ptr + batch * stride_bb + columns[None, :] * stride_bn
    total = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, K, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        a_mask = (rows[:, None] < M) & (inner[None, :] < K)
        b_mask = (inner[:, None] < K) & (columns[None, :] < N)
        a = tl.load(a_rows + inner[None, :] * stride_ak, mask=a_mask, other=0.0)
        b = tl.load(b_columns + inner[:, None] * stride_bk, mask=b_mask, other=0.0)
        total = tl.dot(a.to(OPERANDS), b.to(OPERANDS), total)
    if HAS_BIAS:
        total += tl.load(bias_ptr + columns, mask=columns < N, other=0.0)[None, :]
    c_mask = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c_ptr + batch * M * N + rows[:, None] * N + columns[None, :], total, mask=c_mask)


def matmul(a, b, bias=None):
    """Return ``a @ b + bias`` of two matrices, or of a batch of matrices and a batch or one matrix."""
    wide_a = a if a.dim() == 3 else a.unsqueeze(0)
    batch, rows, inner = wide_a.shape
    wide_b = b.expand(batch, -1, -1)
    columns = b.shape[-1]
    c = torch.empty((batch, rows, columns), device=a.device, dtype=a.dtype)
    _matmul_kernel[(triton.cdiv(rows, 64), triton.cdiv(columns, 64), batch)](
        wide_a,
        wide_b,
        bias,
        c,
        rows,
        columns,
        inner,
        *wide_a.stride(),
        *wide_b.stride(),
        HAS_BIAS=bias is not None,
        OPERANDS=OPERANDS,
        BLOCK_M=64,
        BLOCK_N=64,
        BLOCK_K=32,
        num_warps=4,
    )
    return c if a.dim() == 3 else c[0]


def linear(x, weight, bias=None):
    """Return what ``torch.nn.functional.linear`` returns."""
    flat = matmul(x.reshape(-1, x.shape[-1]), weight.t(), bias)
    return flat.view(*x.shape[:-1], weight.shape[0])
