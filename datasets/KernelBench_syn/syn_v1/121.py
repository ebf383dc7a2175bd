import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Addmm, tanh, exp2, glu."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = torch.addmm(x1, x, x2)
        h2 = torch.tanh(h1)
        h3 = torch.exp2(h2)
        return F.glu(h3, dim=-1)


def get_inputs():
    return [
        torch.randn(512, 128),
        torch.randn(128),
        torch.randn(128, 128),
    ]


def get_init_inputs():
    return []
