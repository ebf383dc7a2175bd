"""Eight problems, and right kernels for them with 48 combinations of tunables each."""

from tests.gpu.tunable_kernels import HEAD, Case, linear_case, reference

LINEAR_GELU = linear_case(
    4096,
    "torch.nn.functional.gelu",
    """BLOCK_M = 64
BLOCK_N = 64
BLOCK_K = 32
NUM_WARPS = 8
NUM_STAGES = 2
TUNABLES = {
    "BLOCK_M": [64, 128],
    "BLOCK_N": [64, 128, 256],
    "BLOCK_K": [32, 64],
    "NUM_WARPS": [4, 8],
    "NUM_STAGES": [2, 4],
}
""",
    """    total += tl.load(b_ptr + columns)[None, :]
    total = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
""",
)
ATTENTION = Case(
    reference(
        "torch.nn.functional.scaled_dot_product_attention(q, k, v)",
        "torch.randn(4, 16, 2048, 64), torch.randn(4, 16, 2048, 64), torch.randn(4, 16, 2048, 64)",
        arguments="q, k, v",
    ),
    HEAD
    + """BLOCK_M = 16
BLOCK_N = 32
NUM_WARPS = 8
NUM_STAGES = 1
TUNABLES = {
    "BLOCK_M": [16, 32, 64, 128],
    "BLOCK_N": [32, 64, 128],
    "NUM_WARPS": [4, 8],
    "NUM_STAGES": [1, 3],
}

@triton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, o_ptr, L, scale, BM: tl.constexpr, BN: tl.constexpr, D: tl.constexpr
):
    head = tl.program_id(1) * L * D
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    depth = tl.arange(0, D)
    q = tl.load(q_ptr + head + rows[:, None] * D + depth[None, :])
    top = tl.full((BM,), float("-inf"), tl.float32)
    whole = tl.zeros((BM,), tl.float32)
    total = tl.zeros((BM, D), tl.float32)
    for start in range(0, L, BN):
        columns = start + tl.arange(0, BN)
        k = tl.load(k_ptr + head + columns[None, :] * D + depth[:, None])
        score = tl.dot(q, k) * scale
        higher = tl.maximum(top, tl.max(score, 1))
        part = tl.exp(score - higher[:, None])
        shrink = tl.exp(top - higher)
        whole = whole * shrink + tl.sum(part, 1)
        v = tl.load(v_ptr + head + columns[:, None] * D + depth[None, :])
        total = tl.dot(part.to(v.dtype), v, total * shrink[:, None])
        top = higher
    out = (total / whole[:, None]).to(o_ptr.dtype.element_ty)
    tl.store(o_ptr + head + rows[:, None] * D + depth[None, :], out)

class ModelNew(nn.Module):
    def forward(self, q, k, v):
        q, k, v = q.contiguous(), k.contiguous(), v.contiguous()
        B, H, L, D = q.shape
        o = torch.empty_like(q)
        attention_kernel[(L // BLOCK_M, B * H)](
            q, k, v, o, L, D ** -0.5, BLOCK_M, BLOCK_N, D, num_warps=NUM_WARPS, num_stages=NUM_STAGES
        )
        return o
""",
    "fp16",
)
SOFTMAX = Case(
    reference("torch.softmax(x, dim=1)", "torch.randn(8192, 4096)"),
    HEAD
    + """BLOCK = 64
ROWS = 4
NUM_WARPS = 1
TUNABLES = {"BLOCK": [128, 512, 2048, 4096], "ROWS": [1, 2, 4], "NUM_WARPS": [1, 4, 8, 16]}

@triton.jit
def softmax_kernel(x_ptr, y_ptr, columns, ROWS: tl.constexpr, BLOCK: tl.constexpr):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]) * columns
    top = tl.full((ROWS, BLOCK), float("-inf"), tl.float32)
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, columns, BLOCK):
        at = rows + start + tl.arange(0, BLOCK)[None, :]
        x = tl.load(x_ptr + at)
        higher = tl.maximum(top, x)
        total = total * tl.exp(top - higher) + tl.exp(x - higher)
        top = higher
    most = tl.max(top, 1)[:, None]
    whole = tl.sum(total * tl.exp(top - most), 1)[:, None]
    for start in range(0, columns, BLOCK):
        at = rows + start + tl.arange(0, BLOCK)[None, :]
        tl.store(y_ptr + at, tl.exp(tl.load(x_ptr + at) - most) / whole)

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax_kernel[(x.shape[0] // ROWS,)](x, y, x.shape[1], ROWS, BLOCK, num_warps=NUM_WARPS)
        return y
""",
)
LAYER_NORM = Case(
    reference("self.norm(x)", "torch.randn(8192, 4096)", "self.norm = nn.LayerNorm(4096)"),
    HEAD
    + """BLOCK = 128
ROWS = 4
NUM_WARPS = 16
TUNABLES = {"BLOCK": [256, 1024, 2048, 4096], "ROWS": [1, 2, 4], "NUM_WARPS": [2, 4, 8, 16]}

@triton.jit
def norm_kernel(
    x_ptr, weight_ptr, bias_ptr, y_ptr, columns, eps, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    rows = (tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]) * columns
    total = tl.zeros((ROWS, BLOCK), tl.float32)
    squares = tl.zeros((ROWS, BLOCK), tl.float32)
    for start in range(0, columns, BLOCK):
        x = tl.load(x_ptr + rows + start + tl.arange(0, BLOCK)[None, :])
        total += x
        squares += x * x
    mean = (tl.sum(total, 1) / columns)[:, None]
    scale = tl.rsqrt((tl.sum(squares, 1) / columns)[:, None] - mean * mean + eps)
    for start in range(0, columns, BLOCK):
        at = start + tl.arange(0, BLOCK)[None, :]
        x = tl.load(x_ptr + rows + at)
        y = (x - mean) * scale * tl.load(weight_ptr + at) + tl.load(bias_ptr + at)
        tl.store(y_ptr + rows + at, y)

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(4096)
    def forward(self, x):
        y = torch.empty_like(x)
        norm_kernel[(x.shape[0] // ROWS,)](
            x, self.norm.weight, self.norm.bias, y, x.shape[1], self.norm.eps, ROWS, BLOCK,
            num_warps=NUM_WARPS,
        )
        return y
""",
)
SWISH = Case(
    reference("x * torch.sigmoid(x)", "torch.randn(8192, 8192)"),
    HEAD
    + """BLOCK = 64
TURNS = 1
NUM_WARPS = 8
TUNABLES = {"BLOCK": [128, 512, 1024, 2048, 4096, 8192], "TURNS": [1, 4], "NUM_WARPS": [1, 2, 4, 8]}

@triton.jit
def swish_kernel(x_ptr, y_ptr, TURNS: tl.constexpr, BLOCK: tl.constexpr):
    first = tl.program_id(0) * TURNS * BLOCK
    for turn in range(TURNS):
        at = first + turn * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + at)
        tl.store(y_ptr + at, x * tl.sigmoid(x))

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        swish_kernel[(x.numel() // (TURNS * BLOCK),)](x, y, TURNS, BLOCK, num_warps=NUM_WARPS)
        return y
""",
)
COLUMN_SUM = Case(
    reference("x.sum(dim=0)", "torch.randn(16384, 8192)"),
    HEAD
    + """BLOCK_R = 8
BLOCK_C = 32
NUM_WARPS = 1
TUNABLES = {"BLOCK_R": [8, 16, 32, 64], "BLOCK_C": [16, 32, 64, 128], "NUM_WARPS": [2, 4, 8]}

@triton.jit
def sum_kernel(x_ptr, y_ptr, rows, columns, BR: tl.constexpr, BC: tl.constexpr):
    at = tl.program_id(0) * BC + tl.arange(0, BC)[None, :]
    total = tl.zeros((BR, BC), tl.float32)
    for start in range(0, rows, BR):
        row = start + tl.arange(0, BR)[:, None]
        total += tl.load(x_ptr + row * columns + at)
    tl.store(y_ptr + tl.program_id(0) * BC + tl.arange(0, BC), tl.sum(total, 0))

class ModelNew(nn.Module):
    def forward(self, x):
        y = torch.empty(x.shape[1], device=x.device, dtype=x.dtype)
        sum_kernel[(x.shape[1] // BLOCK_C,)](x, y, *x.shape, BLOCK_R, BLOCK_C, num_warps=NUM_WARPS)
        return y
""",
)
TRANSPOSE = Case(
    reference("(x.t() * 2.0).contiguous()", "torch.randn(8192, 8192)"),
    HEAD
    + """BLOCK_M = 128
BLOCK_N = 16
NUM_WARPS = 1
TUNABLES = {"BLOCK_M": [16, 32, 64, 128], "BLOCK_N": [16, 32, 64, 128], "NUM_WARPS": [2, 4, 8]}

@triton.jit
def transpose_kernel(x_ptr, y_ptr, M, N, BM: tl.constexpr, BN: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    x = tl.load(x_ptr + rows[:, None] * N + columns[None, :])
    tl.store(y_ptr + columns[:, None] * M + rows[None, :], tl.trans(x) * 2.0)

class ModelNew(nn.Module):
    def forward(self, x):
        M, N = x.shape
        y = torch.empty(N, M, device=x.device, dtype=x.dtype)
        transpose_kernel[(M // BLOCK_M, N // BLOCK_N)](x, y, M, N, BLOCK_M, BLOCK_N, num_warps=NUM_WARPS)
        return y
""",
)
CONVOLUTION = Case(
    reference(
        "torch.relu(self.convolution(x))",
        "torch.randn(16, 64, 66, 66)",
        "self.convolution = nn.Conv2d(64, 128, 3)",
    ),
    HEAD
    + """BLOCK_P = 32
BLOCK_F = 32
BLOCK_C = 16
NUM_WARPS = 8
NUM_STAGES = 1
TUNABLES = {
    "BLOCK_P": [32, 64, 128],
    "BLOCK_F": [32, 128],
    "BLOCK_C": [16, 64],
    "NUM_WARPS": [4, 8],
    "NUM_STAGES": [1, 3],
}

@triton.jit
def convolution_kernel(
    x_ptr, w_ptr, b_ptr, y_ptr, H, W, C, F, OH, OW, BP: tl.constexpr, BF: tl.constexpr, BC: tl.constexpr
):
    points = tl.program_id(0) * BP + tl.arange(0, BP)
    features = tl.program_id(1) * BF + tl.arange(0, BF)
    image = points // (OH * OW)
    row = (points // OW) % OH
    column = points % OW
    total = tl.zeros((BP, BF), tl.float32)
    for tap in range(9):
        place = (row + tap // 3) * W + column + tap % 3
        for start in range(0, C, BC):
            channels = start + tl.arange(0, BC)
            x = tl.load(x_ptr + (image[:, None] * C + channels[None, :]) * H * W + place[:, None])
            w = tl.load(w_ptr + (features[None, :] * C + channels[:, None]) * 9 + tap)
            total = tl.dot(x, w, total)
    total = tl.maximum(total + tl.load(b_ptr + features)[None, :], 0.0)
    at = (image[:, None] * F + features[None, :]) * OH * OW + (row * OW + column)[:, None]
    tl.store(y_ptr + at, total.to(y_ptr.dtype.element_ty))

class ModelNew(nn.Module):
    def __init__(self):
        super().__init__()
        self.convolution = nn.Conv2d(64, 128, 3)
    def forward(self, x):
        x = x.contiguous()
        (B, C, H, W), F = x.shape, self.convolution.weight.shape[0]
        y = torch.empty(B, F, H - 2, W - 2, device=x.device, dtype=x.dtype)
        convolution_kernel[(B * (H - 2) * (W - 2) // BLOCK_P, F // BLOCK_F)](
            x, self.convolution.weight, self.convolution.bias, y, H, W, C, F, H - 2, W - 2,
            BLOCK_P, BLOCK_F, BLOCK_C, num_warps=NUM_WARPS, num_stages=NUM_STAGES,
        )
        return y
""",
    "fp16",
)
CASES = {
    "linear_gelu": LINEAR_GELU,
    "attention": ATTENTION,
    "softmax": SOFTMAX,
    "layer_norm": LAYER_NORM,
    "swish": SWISH,
    "column_sum": COLUMN_SUM,
    "transpose": TRANSPOSE,
    "convolution": CONVOLUTION,
}
