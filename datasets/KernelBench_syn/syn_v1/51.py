import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mm, mish, softplus."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.mm(x, x1)
        h2 = F.mish(h1)
        return F.softplus(h2, beta=2.0)


def get_inputs():
    return [
        torch.randn(128, 512),
        torch.randn(512, 128),
    ]


def get_init_inputs():
    return []
