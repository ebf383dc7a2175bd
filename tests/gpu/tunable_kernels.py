"""Problems with right kernels whose declared numbers are bad; used by tests and by measure_sweep."""

from dataclasses import dataclass

_HEAD = "import torch\nimport torch.nn as nn\n"
HEAD = _HEAD + "import triton\nimport triton.language as tl\n\n"
"""Imports of a kernel's source."""


def reference(forward: str, inputs: str, init: str = "", arguments: str = "x") -> str:
    """Return the source of a problem whose module computes ``forward``."""
    constructor = f"    def __init__(self):\n        super().__init__()\n        {init}\n" if init else ""
    return (
        f"{_HEAD}\nclass Model(nn.Module):\n{constructor}"
        f"    def forward(self, {arguments}):\n        return {forward}\n\n"
        f"def get_inputs():\n    return [{inputs}]\n\ndef get_init_inputs():\n    return []\n"
    )


@dataclass(frozen=True)
class Case:
    """One problem and its kernel."""

    reference: str
    candidate: str
    dtype: str = "fp32"


def linear_case(size: int, function: str, tunables: str, activation: str) -> Case:
    """Return the case of ``function`` of a square linear layer; ``activation`` works on ``total``."""
    return Case(
        reference(
            f"{function}(self.linear(x))",
            f"torch.randn({size}, {size})",
            f"self.linear = nn.Linear({size}, {size})",
        ),
        HEAD
        + tunables
        + """
@triton.jit
def linear_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr
):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        inner = start + tl.arange(0, BK)
        x = tl.load(x_ptr + rows[:, None] * K + inner[None, :])
        w = tl.load(w_ptr + columns[None, :] * K + inner[:, None])
        total = tl.dot(x, w, total)
"""
        + activation
        + """    tl.store(y_ptr + rows[:, None] * N + columns[None, :], total.to(y_ptr.dtype.element_ty))

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(SIZE, SIZE)
    def forward(self, x):
        (M, K), N = x.shape, self.linear.weight.shape[0]
        y = torch.empty(M, N, device=x.device, dtype=x.dtype)
        linear_kernel[(M // BLOCK_M, N // BLOCK_N)](
            x, self.linear.weight, self.linear.bias, y, M, N, K, BLOCK_M, BLOCK_N, BLOCK_K,
            num_warps=NUM_WARPS, num_stages=NUM_STAGES,
        )
        return y
""".replace("SIZE", str(size)),
        "fp16",
    )


SOFTMAX = Case(
    reference("torch.softmax(x, dim=1)", "torch.randn(4096, 8192)"),
    HEAD
    + """BLOCK = tl.constexpr(64)
NUM_WARPS = 1
TUNABLES = {"BLOCK": [64, 256, 1024, 2048, 4096, 8192], "NUM_WARPS": [1, 2, 4, 8, 16]}

@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns):
    row = tl.program_id(0) * columns
    top = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + at, mask=at < columns, other=float("-inf"))
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.exp(x - higher)
        top = higher
    most = tl.max(top, 0)
    whole = tl.sum(total * tl.exp(top - most), 0)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + at, mask=at < columns, other=0.0)
        tl.store(y_ptr + row + at, tl.exp(x - most) / whole, mask=at < columns)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0],)](x, y, x.shape[1], num_warps=NUM_WARPS)
        return y
""",
)
LAYER_NORM = Case(
    reference("self.norm(x)", "torch.randn(8192, 4096)", "self.norm = nn.LayerNorm(4096)"),
    HEAD
    + """BLOCK = tl.constexpr(128)
NUM_WARPS = 16
TUNABLES = {"BLOCK": [128, 512, 1024, 2048, 4096], "NUM_WARPS": [1, 2, 4, 8, 16]}

@triton.jit
def norm_kernel(x_ptr, weight_ptr, bias_ptr, y_ptr, columns, eps):
    row = tl.program_id(0) * columns
    total = tl.zeros((BLOCK,), tl.float32)
    squares = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row + at, mask=at < columns, other=0.0)
        total += x
        squares += x * x
    mean = tl.sum(total, 0) / columns
    scale = tl.rsqrt(tl.sum(squares, 0) / columns - mean * mean + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        inside = at < columns
        x = tl.load(x_ptr + row + at, mask=inside, other=0.0)
        weight = tl.load(weight_ptr + at, mask=inside)
        bias = tl.load(bias_ptr + at, mask=inside)
        tl.store(y_ptr + row + at, (x - mean) * scale * weight + bias, mask=inside)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4096)
    def forward(self, x):
        y = torch.empty_like(x)
        norm_kernel[(x.shape[0],)](
            x, self.norm.weight, self.norm.bias, y, x.shape[1], self.norm.eps, num_warps=NUM_WARPS
        )
        return y
""",
)
MATMUL = linear_case(
    2048,
    "torch.relu",
    """BLOCK_M = 16
BLOCK_N = 32
BLOCK_K = 16
NUM_WARPS = 1
NUM_STAGES = 1
TUNABLES = {
    "BLOCK_M": [16, 32, 64, 128],
    "BLOCK_N": [32, 64, 128, 256],
    "BLOCK_K": [16, 32, 64, 128],
    "NUM_WARPS": [1, 4, 8],
    "NUM_STAGES": [1, 2, 3, 4],
}
""",
    "    total = tl.maximum(total + tl.load(b_ptr + columns)[None, :], 0.0)\n",
)
GELU = Case(
    reference("torch.nn.functional.gelu(x)", "torch.randn(4096, 4096)"),
    HEAD
    + """BLOCK = 64
NUM_WARPS = 8
TUNABLES = {"BLOCK": [64, 256, 1024, 2048, 4096, 8192], "NUM_WARPS": [1, 2, 4, 8]}

@triton.jit
def gelu_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at, mask=at < n)
    tl.store(y_ptr + at, 0.5 * x * (1.0 + tl.erf(x * 0.7071067811865476)), mask=at < n)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        n = x.numel()
        gelu_kernel[(triton.cdiv(n, BLOCK),)](x, y, n, BLOCK, num_warps=NUM_WARPS)
        return y
""",
)
ROW_SUM = Case(
    reference("x.sum(dim=1)", "torch.randn(2048, 16384)"),
    HEAD
    + """BLOCK = 64
NUM_WARPS = 2
TUNABLES = {"BLOCK": [64, 256, 1024, 4096, 16384], "NUM_WARPS": [1, 2, 4, 8, 16]}

@triton.jit
def sum_kernel(x_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + row * columns + at, mask=at < columns, other=0.0)
    tl.store(y_ptr + row, tl.sum(total, 0))

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[0], device=x.device, dtype=x.dtype)
        sum_kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK, num_warps=NUM_WARPS)
        return y
""",
)
CASES = {
    "softmax": SOFTMAX,
    "layer_norm": LAYER_NORM,
    "matmul_relu": MATMUL,
    "gelu": GELU,
    "row_sum": ROW_SUM,
}
