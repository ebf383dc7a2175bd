import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Hardtanh, sort, div, diff, gelu."""

    def __init__(self):
        super().__init__()
        self.gelu_1 = nn.GELU(approximate="tanh")

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = F.hardtanh(x, min_val=-1.0, max_val=1.0)
        h2 = torch.sort(h1, dim=-1).values
        h3 = h2 / x1
        h4 = torch.diff(h3, dim=-1)
        return self.gelu_1(h4)


def get_inputs():
    return [
        torch.randn(8, 128, 32),
        torch.rand(8, 128, 32) + 0.5,
    ]


def get_init_inputs():
    return []
