"""Tasks whose gradients are judged: common modules, each as the source of a problem.

    python -m tests.backward_tasks FOLDER

writes them as ``FOLDER/level1/N_name.py``, for ``bench_judge.py --part problems --direction both``.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path
from textwrap import indent
from typing import Literal

Size = Literal["small", "large"]


@dataclass(frozen=True)
class ModuleText:
    """A module with dimensions ``N`` and ``D``: its layers, the body of ``forward``, inputs, arguments."""

    layers: str
    result: str
    inputs: str = "torch.randn(N, D)"
    small: tuple[int, int] = (6, 16)
    large: tuple[int, int] = (4096, 1024)
    arguments: str = "x"

    def source(self, size: Size = "large") -> str:
        """Return the source of a problem."""
        rows, columns = self.small if size == "small" else self.large
        return (
            "import torch\nimport torch.nn as nn\nimport torch.nn.functional as F\n\n"
            f"N, D = {rows}, {columns}\n\n\n"
            "class Model(nn.Module):\n    def __init__(self):\n        super().__init__()\n"
            f"{indent(self.layers, ' ' * 8)}\n\n"
            f"    def forward(self, {self.arguments}):\n{indent(self.result, ' ' * 8)}\n\n\n"
            f"def get_inputs():\n    return [{self.inputs}]\n\n\n"
            "def get_init_inputs():\n    return []\n"
        )


_HEAD_SIZES = ((8, 16), (512, 1024))
_IMAGES = ((2, 8), (32, 64))
_PICTURES = "torch.randn(N, D, D // 2 + 4, D // 2 + 4)"
_QKV = "q, k, v = self.qkv(x).view(2, N, 3, 4, D // 4).permute(2, 0, 3, 1, 4)"
_ATTENTION = "F.scaled_dot_product_attention(q, k, v{causal}).transpose(1, 2).reshape(2, N, D)"
_LABELS = "torch.randn(N, D), torch.randint(D, (N,))"

_MODULES = {
    "linear": ModuleText("self.linear = nn.Linear(D, D)", "return self.linear(x)"),
    "mlp_gelu": ModuleText(
        "self.up, self.down = nn.Linear(D, 4 * D), nn.Linear(4 * D, D)",
        "return self.down(F.gelu(self.up(x)))",
        large=(2048, 1024),
    ),
    "mlp_gated": ModuleText(
        "self.gate, self.up, self.down = (nn.Linear(D, D, bias=False) for _ in range(3))",
        "return self.down(F.silu(self.gate(x)) * self.up(x))",
    ),
    "conv2d": ModuleText(
        "self.conv = nn.Conv2d(D, D, 3, padding=1)",
        "return self.conv(x)",
        _PICTURES,
        *_IMAGES,
    ),
    "conv2d_strided": ModuleText(
        "self.conv = nn.Conv2d(D, 2 * D, 3, stride=2, padding=1, groups=2)",
        "return F.relu(self.conv(x))",
        _PICTURES,
        *_IMAGES,
    ),
    "conv_transposed": ModuleText(
        "self.conv = nn.ConvTranspose2d(D, D, 2, stride=2)",
        "return self.conv(x)",
        _PICTURES,
        *_IMAGES,
    ),
    "layer_norm": ModuleText("self.norm = nn.LayerNorm(D)", "return self.norm(x)"),
    "rms_norm": ModuleText(
        "self.scale = nn.Parameter(torch.rand(D) + 0.5)",
        "return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.scale",
    ),
    "batch_norm": ModuleText(
        "self.norm = nn.BatchNorm2d(D)",
        "return self.norm(x)",
        _PICTURES,
        *_IMAGES,
    ),
    "group_norm": ModuleText(
        "self.norm = nn.GroupNorm(4, D)",
        "return F.silu(self.norm(x))",
        _PICTURES,
        *_IMAGES,
    ),
    "softmax": ModuleText("pass", "return F.softmax(x, dim=-1)"),
    "cross_entropy": ModuleText("pass", "return F.cross_entropy(x, target)", _LABELS, arguments="x, target"),
    "linear_cross_entropy": ModuleText(
        "self.head = nn.Linear(D, D, bias=False)",
        "return F.cross_entropy(self.head(x), target)",
        _LABELS,
        arguments="x, target",
    ),
    "mse_loss": ModuleText(
        "pass", "return F.mse_loss(x, target)", "torch.randn(N, D), torch.randn(N, D)", arguments="x, target"
    ),
    "attention": ModuleText(
        "self.qkv = nn.Linear(D, 3 * D)",
        f"{_QKV}\nreturn {_ATTENTION.format(causal='')}",
        "torch.randn(2, N, D)",
        *_HEAD_SIZES,
    ),
    "attention_causal": ModuleText(
        "self.qkv = nn.Linear(D, 3 * D)",
        f"{_QKV}\nreturn {_ATTENTION.format(causal=', is_causal=True')}",
        "torch.randn(2, N, D)",
        *_HEAD_SIZES,
    ),
    "embedding": ModuleText(
        "self.table = nn.Embedding(4 * D, D)", "return self.table(x)", "torch.randint(4 * D, (2, N))"
    ),
    "max_pool": ModuleText("pass", "return F.max_pool2d(x, 2)", _PICTURES, *_IMAGES),
    "residual_block": ModuleText(
        "self.norm, self.linear = nn.LayerNorm(D), nn.Linear(D, D)",
        "return x + F.gelu(self.linear(self.norm(x)))",
    ),
    "two_outputs": ModuleText(
        "self.linear = nn.Linear(D, D)", "y = torch.tanh(self.linear(x))\nreturn y, y.square().sum(-1)"
    ),
}


def sources(size: Size) -> dict[str, str]:
    """Return the sources by name; ``small`` ones suit a judge without a GPU."""
    return {name: module.source(size) for name, module in _MODULES.items()}


def write(folder: Path, size: Size = "large") -> None:
    """Write the problems as files of level 1."""
    (folder / "level1").mkdir(parents=True, exist_ok=True)
    for number, (name, source) in enumerate(sources(size).items(), 1):
        (folder / "level1" / f"{number}_{name}.py").write_text(source, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
