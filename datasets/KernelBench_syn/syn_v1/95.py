import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Cdist, clamp min, softplus, add, xlog1py."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = torch.cdist(x, x1)
        h2 = torch.clamp_min(h1, 0.0)
        h3 = F.softplus(h2) + 0.1
        return torch.special.xlog1py(h3, x2)


def get_inputs():
    return [
        torch.randn(256, 192),
        torch.randn(64, 192),
        torch.rand(256, 64) + 0.5,
    ]


def get_init_inputs():
    return []
