import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Sinh, selu, where, linear, mv."""

    def __init__(self):
        super().__init__()
        self.linear_1 = nn.Linear(192, 64, bias=True)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = torch.sinh(x)
        h2 = F.selu(h1)
        h3 = torch.where(x1, h2, h1)
        h4 = self.linear_1(h3)
        return torch.mv(h4, x2)


def get_inputs():
    return [
        torch.randn(256, 192),
        torch.rand(256, 192) < 0.5,
        torch.randn(64),
    ]


def get_init_inputs():
    return []
