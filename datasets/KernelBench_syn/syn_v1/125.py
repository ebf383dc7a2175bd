import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Relu6, diff, amin, i1, index select, select."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = F.relu6(x)
        h2 = torch.diff(h1, dim=-1)
        h3 = torch.amin(h2, dim=-1, keepdim=True)
        h4 = torch.special.i1(h3)
        h5 = torch.index_select(h4, 1, x1)
        return torch.select(h5, 1, 0)


def get_inputs():
    return [
        torch.randn(64, 32, 128),
        torch.randint(0, 32, (32,)),
    ]


def get_init_inputs():
    return []
