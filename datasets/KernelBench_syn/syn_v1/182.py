import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Zero pad2d, deg2rad, softplus, add, xlogy."""

    def __init__(self):
        super().__init__()
        self.zero_pad2d_1 = nn.ZeroPad2d(2)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.zero_pad2d_1(x)
        h2 = torch.deg2rad(h1)
        h3 = F.softplus(h2) + 0.1
        return torch.xlogy(h3, x1)


def get_inputs():
    return [
        torch.randn(8, 24, 20, 24),
        torch.rand(8, 24, 24, 28) + 0.5,
    ]


def get_init_inputs():
    return []
