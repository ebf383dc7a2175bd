"""Modules that the offline writer is tried on: name -> source without imports."""

# ruff: noqa: E501

HEADER = """import math
import torch
import torch.nn as nn
import torch.nn.functional as F
"""


def module(forward: str, inputs: str, init: str = "", arguments: str = "", values: str = "") -> str:
    """Return a problem file; ``forward`` is ``parameters: body`` with statements divided by ``; ``."""
    parameters, body = forward.split(": ", 1)
    lines = [
        HEADER,
        "class Model(nn.Module):",
        f"    def __init__(self{', ' + arguments if arguments else ''}):",
        "        super().__init__()",
        *(f"        {line}" for line in init.split("; ") if line),
        f"    def forward(self, {parameters}):",
        *(f"        {line}" for line in body.split("; ")),
        f"def get_inputs():\n    return [{inputs}]",
        f"def get_init_inputs():\n    return [{values}]\n",
    ]
    return "\n".join(lines)


MODULES = {
    "generator_taken_apart": module(
        "x: q, k = x.chunk(2, dim=-1); q, k = (z.reshape(z.shape[0], -1) for z in (q, k)); "
        "return torch.softmax(q * k, dim=-1)",
        "torch.randn(4, 6, 16)",
    ),
    "generator_that_hides_a_name": module(
        "x: z = torch.relu(x); a, b = (z * 2 for z in z.chunk(2, dim=-1)); return torch.sigmoid(a) * b + z[:, :8]",
        "torch.randn(5, 16)",
    ),
    "generator_over_layers": module(
        "x: a, b = (layer(x) for layer in self.layers); c = [F.relu(v) for v in (a, b)]; return torch.tanh(c[0]) * c[1]",
        "torch.randn(5, 16)",
        "self.layers = nn.ModuleList([nn.Linear(16, 8), nn.Linear(16, 8)])",
    ),
    "lambda_that_hides_a_name": module(
        "x: y = torch.relu(x); f = lambda y: y * 3; return torch.sigmoid(f(x)) + y",
        "torch.randn(5, 16)",
    ),
    "swish_times_scalar": module("x: y = x * torch.sigmoid(x); return y * 0.7", "torch.randn(7, 33)"),
    "gelu_spelled_out": module(
        "x: return 0.5 * x * (1 + torch.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * torch.pow(x, 3))))",
        "torch.randn(5, 77)",
    ),
    "parameters_and_broadcast": module(
        "x: return F.relu(x * self.scale + self.shift) - self.offset",
        "torch.randn(3, 6, 5, 4)",
        "self.scale = nn.Parameter(torch.randn(6, 1, 1)); self.shift = nn.Parameter(torch.randn(4)); "
        "self.offset = nn.Parameter(torch.randn(3, 1, 5, 1))",
    ),
    "outer_broadcast": module(
        "a, b: return torch.exp(-(a - b).abs())", "torch.randn(9, 1), torch.randn(1, 13)"
    ),
    "mask_bool": module(
        "x, mask: return torch.where(mask, x * 2, torch.zeros_like(x)) + x.masked_fill(~mask, 0.5)",
        "torch.randn(6, 19), torch.rand(6, 19) > 0.4",
    ),
    "mask_from_integers": module(
        "x, kinds: return x.masked_fill(kinds == 0, -1.0) * (kinds > 1).float()",
        "torch.randn(6, 19), torch.randint(0, 3, (6, 19))",
    ),
    "two_outputs": module(
        "x, y: s = torch.tanh(x + y); d = F.silu(x - y); return s, d",
        "torch.randn(8, 31), torch.randn(8, 31)",
    ),
    "outputs_of_two_shapes": module(
        "x, w: g = torch.sigmoid(w); return g * x, g, x.mean(dim=1)", "torch.randn(8, 31), torch.randn(31)"
    ),
    "dictionary_output": module(
        "x: y = F.mish(x); return {'top': y.amax(dim=-1), 'all': [y, x + 1]}", "torch.randn(4, 3, 21)"
    ),
    "keyword_arguments": module(
        "x: x = F.leaky_relu(input=x, negative_slope=0.2); x = torch.clamp(x, max=1.5, min=-0.5); "
        "return F.softplus(x, beta=2.0, threshold=3.0)",
        "3 * torch.randn(10, 50)",
    ),
    "constructor_scalars": module(
        "x: return (x - self.mean) / self.deviation ** self.power",
        "torch.randn(4, 65)",
        "self.mean = mean; self.deviation = deviation; self.power = power",
        "mean, deviation, power=2",
        "0.3, 1.7",
    ),
    "scalar_input": module("x, factor: return torch.sin(x) * factor + x ** 2", "torch.randn(40), 3"),
    "sum_dim0": module("x: return torch.sum(x * x, dim=0)", "torch.randn(37, 11)"),
    "mean_dim1_keepdim": module("x: return x - x.mean(1, keepdim=True)", "torch.randn(5, 23, 7)"),
    "mean_last_two": module("x: return torch.relu(x).mean(dim=(-2, -1)) * 2", "torch.randn(3, 4, 6, 7)"),
    "softmax_dim1": module("x: return F.softmax(x / 0.5, dim=1)", "torch.randn(3, 17, 5, 4)"),
    "log_softmax": module("x: return nn.functional.log_softmax(x + 1, dim=-1)", "torch.randn(9, 40)"),
    "logsumexp_chain": module(
        "x: y = torch.logsumexp(x, dim=1, keepdim=True); return F.gelu(F.leaky_relu(y, 0.01))",
        "torch.randn(9, 30)",
    ),
    "maximum_value_of_pair": module(
        "x: top = torch.max(x, dim=1, keepdim=True)[0]; low, where = torch.min(x, dim=1); return top - 1, low, where",
        "torch.randn(6, 18)",
    ),
    "variance": module(
        "x: return (x - x.mean(-1, keepdim=True)) / (x.std(-1, keepdim=True) + 1e-3), x.var(dim=0, unbiased=False)",
        "torch.randn(12, 26)",
    ),
    "layer_norm_module": module(
        "x: return torch.tanh(self.norm(x))",
        "torch.randn(5, 4, 30)",
        "self.norm = nn.LayerNorm((4, 30), eps=1e-3); nn.init.normal_(self.norm.weight)",
    ),
    "layer_norm_spelled_out": module(
        "x: m = x.mean(dim=-1, keepdim=True); v = ((x - m) ** 2).mean(dim=-1, keepdim=True); "
        "return self.gain * (x - m) / torch.sqrt(v + self.eps) + self.bias",
        "torch.randn(11, 36)",
        "self.gain = nn.Parameter(torch.randn(36)); self.bias = nn.Parameter(torch.randn(36)); self.eps = 1e-6",
    ),
    "functional_layer_norm": module(
        "x: return F.layer_norm(x, (20,), self.weight, None, 1e-5)",
        "torch.randn(3, 20)",
        "self.weight = nn.Parameter(torch.randn(20))",
    ),
    "group_norm": module(
        "x: return F.hardswish(self.norm(x)) * self.gate.view(1, -1, 1, 1)",
        "torch.randn(2, 12, 5, 3)",
        "self.norm = nn.GroupNorm(3, 12); nn.init.normal_(self.norm.bias); "
        "self.gate = nn.Parameter(torch.randn(12))",
    ),
    "group_norm_on_features": module(
        "x: return self.act(self.norm(self.fc(x)))",
        "torch.randn(6, 20)",
        "self.fc = nn.Linear(20, 24); self.norm = nn.GroupNorm(4, 24); self.act = nn.ELU(0.7)",
    ),
    "instance_norm": module(
        "x: return self.norm(x) + x", "torch.randn(2, 3, 6, 5)", "self.norm = nn.InstanceNorm2d(3)"
    ),
    "normalize": module("x: return F.normalize(x, p=2, dim=1), x / torch.norm(x)", "torch.randn(4, 25)"),
    "linear_epilogue": module(
        "x, r: return torch.clamp(self.fc(x) * 0.5 + r, min=-1.0, max=1.0) * self.gain",
        "torch.randn(18, 33), torch.randn(18, 21)",
        "self.fc = nn.Linear(33, 21); self.gain = nn.Parameter(torch.randn(21))",
    ),
    "linear_without_bias_3d": module(
        "x: return F.gelu(self.fc(x), approximate='tanh')",
        "torch.randn(2, 9, 16)",
        "self.fc = nn.Linear(16, 40, bias=False)",
    ),
    "matmul_transposed": module(
        "a, b: return torch.matmul(a.T, b.t()) + 1", "torch.randn(30, 17), torch.randn(22, 30)"
    ),
    "batched_matmul": module(
        "a, b: return torch.bmm(a, b).relu(), a[0] @ b", "torch.randn(3, 20, 18), torch.randn(3, 18, 10)"
    ),
    "operator_matmul_broadcast": module(
        "a, b: return a @ b * 2", "torch.randn(2, 3, 10, 8), torch.randn(3, 8, 6)"
    ),
    "functional_linear_sum": module(
        "x: y = F.linear(x, self.w, self.b); return torch.sum(y / 2, dim=1, keepdim=True) * self.c",
        "torch.randn(9, 14)",
        "self.w = nn.Parameter(torch.randn(25, 14)); self.b = nn.Parameter(torch.randn(25)); self.c = 1.5",
    ),
    "attention": module(
        "q, k, v: s = q @ k.transpose(-2, -1) / math.sqrt(q.size(-1)); "
        "s = s.masked_fill(self.mask[: s.shape[-2], : s.shape[-1]] == 0, float('-inf')); return F.softmax(s, dim=-1) @ v",
        "torch.randn(2, 3, 9, 8), torch.randn(2, 3, 9, 8), torch.randn(2, 3, 9, 8)",
        "self.register_buffer('mask', torch.tril(torch.ones(16, 16)))",
    ),
    "sequential": module(
        "x: return self.net(x) + self.skip(x)",
        "torch.randn(7, 12)",
        "self.net = nn.Sequential(nn.Linear(12, 20), nn.LayerNorm(20), nn.GELU(), nn.Linear(20, 12), nn.Tanh()); "
        "self.skip = nn.Identity()",
    ),
    "module_list_loop": module(
        "x: start = x; \nfor_loop",
        "torch.randn(6, 10)",
        "self.layers = nn.ModuleList([nn.Linear(10, 10) for _ in range(3)]); self.count = 3",
    )
    .replace(
        "for_loop",
        "        for layer in self.layers:\n            x = torch.relu(layer(x)) + 0.1 * start\n"
        "        for i in range(self.count):\n            x = torch.tanh(x * i)\n        return x",
    )
    .replace("        \n", ""),
    "branch_on_constant": module(
        "x: \nbranch", "torch.randn(5, 9)", "self.scale = 2.0; self.bias = None; self.hard = True"
    )
    .replace(
        "branch",
        "        y = x * self.scale\n        if self.hard:\n            y = F.hardtanh(y, -0.5, 0.5)\n        else:\n"
        "            y = torch.tanh(y)\n        y = y if self.bias is None else y + self.bias\n        return y.exp()",
    )
    .replace("        \n", ""),
    "in_place": module(
        "x: y = x * 2; y += 1; y -= x; z = y.clone(); z.add_(1.0); z[:, 0] = 0; return self.act(z) * y",
        "torch.randn(5, 9)",
        "self.act = nn.ReLU(inplace=True)",
    ),
    "swap_and_reuse": module(
        "a, b: a, b = b, a; c = a - b; a = c * a; return a, b, c", "torch.randn(4, 5), torch.randn(4, 5)"
    ),
    "convolution_then_chain": module(
        "x: x = self.conv(x); x = torch.min(x, torch.tensor(self.limit)); x = x + self.bias; return F.mish(x) * 2",
        "torch.randn(2, 3, 8, 8)",
        "self.conv = nn.Conv2d(3, 5, 3); self.limit = 0.4; self.bias = nn.Parameter(torch.randn(5, 1, 1))",
    ),
    "pool_and_means": module(
        "x: x = self.pool(x * 1.5); b, c, h, w = x.shape; x = x.view(b, c, -1).softmax(dim=2).view(b, c, h, w); "
        "return torch.mean(x * self.scale, dim=[2, 3])",
        "torch.randn(2, 3, 8, 8)",
        "self.pool = nn.MaxPool2d(2); self.scale = nn.Parameter(torch.ones(1, 3, 1, 1))",
    ),
    "losses": module(
        "p, t: return torch.mean((p - t) ** 2) + F.smooth_l1_loss(p, t), F.l1_loss(p, t, reduction='sum')",
        "torch.randn(40, 30), torch.randn(40, 30)",
    ),
    "full_reductions": module(
        "p, t: return torch.mean((p - t) ** 2) + F.relu(p).sum(), torch.tanh(t)",
        "torch.randn(40, 30), torch.randn(40, 30)",
    ),
    "hinge": module(
        "p, t: return torch.mean(torch.clamp(1 - p * t, min=0))",
        "torch.randn(40, 30), torch.randint(0, 2, (30,)).float() * 2 - 1",
    ),
    "integers": module(
        "n: return n * 2 + 1, n / 4, n > 3, (n % 2 == 0), n.float().sqrt()", "torch.randint(0, 9, (6, 7))"
    ),
    "comparisons_and_logic": module(
        "x, y: inside = (x > -0.5) & (x < y); return inside, torch.where(inside, 1.0, 0.0), x.ge(0) | ~inside",
        "torch.randn(6, 7), torch.randn(6, 7)",
    ),
    "gated_halves": module(
        "x: a, g = x.chunk(2, dim=-1); u, v = torch.split(x, 8, dim=1); return a * g.sigmoid(), u.exp() - v",
        "torch.randn(5, 16)",
    ),
    "reduction_of_reduction": module(
        "x: x = x.sum(dim=1, keepdim=True); x = torch.max(x, dim=1, keepdim=True)[0]; x = x.logsumexp(1, True); "
        "return x * 2",
        "torch.randn(6, 15)",
    ),
    "row_value_meets_longer_operand": module(
        "x: m = x.mean(dim=1, keepdim=True); return torch.sigmoid(m + self.bias)",
        "torch.randn(6, 15)",
        "self.bias = nn.Parameter(torch.randn(9))",
    ),
    "residual_of_a_mean": module(
        "x: y = F.gelu(x.mean(dim=1, keepdim=True)); return y + x", "torch.randn(6, 15)"
    ),
    "powers": module(
        "x: return x.abs() ** 1.5 + x ** self.n + 2 ** x + x.pow(-1)", "torch.randn(5, 8)", "self.n = 3"
    ),
    "many_activations": module(
        "x: a = F.celu(x, 0.5) + F.selu(x) + F.hardsigmoid(x) + F.softsign(x) + F.logsigmoid(x); "
        "b = F.softshrink(x) + F.hardshrink(x) + F.threshold(x, 0.1, 2.0) + F.relu6(x) + F.tanhshrink(x); "
        "return a + b + x.sign() * x.floor() + torch.erf(x) + torch.log1p(x.abs()) + torch.expm1(x)",
        "torch.randn(13, 29)",
    ),
    "long_rows": module("x: return torch.softmax(x, dim=-1), x.sum(dim=-1)", "torch.randn(2, 40000)"),
    "unused_and_constants": module(
        "x: eps = 1e-3; unused = x * 3; k = int(x.shape[-1] ** 0.5); return x / (x.abs() + eps) + k",
        "torch.randn(3, 16)",
    ),
    "operators_without_a_kernel": module(
        "x: k = 5; k ^= 2; y = torch.relu(x) * 2 * k; y -= x.numel() >> 2; return y + (k << 1) + len(b'{}')",
        "torch.randn(3, 6)",
    ),
    "clones_and_views": module(
        "x: y = torch.relu(x); z = y.clone(); same = z; z += 1; return torch.tanh(y), same * 2",
        "torch.randn(3, 6)",
    ),
    "strings": module(
        "x: kind = f'{x.dim()}d'; table = {'2d': 2.0, 'a{b}': 3}; y = x * table[kind]; return torch.relu(y) + len(str(x.dim()))",
        "torch.randn(3, 6)",
    ),
    "lambda_and_comprehension": module(
        "x: f = lambda t: t * 2; parts = [f(p) for p in x.unbind(0)]; return torch.stack(parts).relu()",
        "torch.randn(3, 6)",
    ),
    "norm_of_reduced_rows": module(
        "x: h = F.softshrink(torch.sum(x, dim=1, keepdim=True), 0.1); return torch.rsqrt(F.softplus(self.norm(h)) + 0.1)",
        "torch.randn(5, 6, 24)",
        "self.norm = nn.RMSNorm(24, eps=1e-06)",
    ),
    "norm_of_row_minima": module(
        "x: return self.norm(torch.sigmoid(torch.min(x, dim=-1).values))",
        "torch.randn(3, 12, 9)",
        "self.norm = nn.RMSNorm(12, eps=1e-06)",
    ),
    "softmax_read_twice_later": module(
        "x, y: h = torch.cosh(F.softmax(x, dim=-1)); return torch.addcmul(torch.tan(torch.sigmoid(h)), h, y, value=1.0)",
        "torch.randn(4, 30), torch.randn(4, 30)",
    ),
}

MODULES["nested_modules"] = (
    HEADER
    + """
class Block(nn.Module):
    def __init__(self, size, slope=0.1):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.fc = nn.Linear(size, size)
        self.slope = slope

    def forward(self, x, scale=1.0):
        h = F.leaky_relu(self.fc(self.norm(x)), self.slope)
        return x + h * scale


def twice(value):
    return 2 * value


WIDE = twice(LIMIT)


def squash(x, limit=WIDE):
    return x.clamp(-limit, limit)


class Model(nn.Module):
    def __init__(self, size, depth):
        super(Model, self).__init__()
        self.blocks = nn.Sequential(*[Block(size) for _ in range(depth)])
        self.last = Block(size, 0.3)

    def helper(self, x):
        return torch.cos(x)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        \"\"\"Blocks, then a squashed result.\"\"\"
        x = self.blocks(x)
        y = self.last(x, scale=0.5)
        return squash(self.helper(y) + y * LIMIT)


def get_inputs():
    x = torch.randn(4, size)
    return [x]


def get_init_inputs():
    return [size, 2]
"""
).replace("\nclass Block", "\nsize = 18\nLIMIT = 1.25\n\n\nclass Block", 1)
