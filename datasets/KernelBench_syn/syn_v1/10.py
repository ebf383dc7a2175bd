import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mul, group norm, softplus, add, modified bessel k0."""

    def __init__(self):
        super().__init__()
        self.group_norm_1 = nn.GroupNorm(8, 16)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = x * x1
        h2 = self.group_norm_1(h1)
        h3 = F.softplus(h2) + 0.1
        return torch.special.modified_bessel_k0(h3)


def get_inputs():
    return [
        torch.randn(16, 16, 12, 48),
        torch.randn(16, 16, 12, 48),
    ]


def get_init_inputs():
    return []
