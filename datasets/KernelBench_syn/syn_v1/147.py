import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Outer product, softplus, add, scaled modified bessel k1."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.einsum("nd,np->ndp", x, x1)
        h2 = F.softplus(h1) + 0.1
        return torch.special.scaled_modified_bessel_k1(h2)


def get_inputs():
    return [
        torch.randn(512, 192),
        torch.randn(512, 8),
    ]


def get_init_inputs():
    return []
