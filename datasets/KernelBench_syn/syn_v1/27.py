import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Softplus, masked fill, softsign."""

    def __init__(self):
        super().__init__()
        self.softplus_1 = nn.Softplus(beta=1.0)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.softplus_1(x)
        h2 = h1.masked_fill(x1, 2.0)
        return F.softsign(h2)


def get_inputs():
    return [
        torch.randn(256, 512),
        torch.rand(256, 512) < 0.5,
    ]


def get_init_inputs():
    return []
