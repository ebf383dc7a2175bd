import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Zero pad2d, softsign, softplus, add, log2."""

    def __init__(self):
        super().__init__()
        self.zero_pad2d_1 = nn.ZeroPad2d(1)
        self.softsign_2 = nn.Softsign()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.zero_pad2d_1(x)
        h2 = self.softsign_2(h1)
        h3 = F.softplus(h2) + 0.1
        return torch.log2(h3)


def get_inputs():
    return [
        torch.randn(4, 48, 16, 12),
    ]


def get_init_inputs():
    return []
