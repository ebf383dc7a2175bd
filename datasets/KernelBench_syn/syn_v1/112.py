import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Relu, nanmean, softplus, add, xlog1py."""

    def __init__(self):
        super().__init__()
        self.relu_1 = nn.ReLU()

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.relu_1(x)
        h2 = torch.nanmean(h1, dim=-1)
        h3 = F.softplus(h2) + 0.1
        return torch.special.xlog1py(h3, x1)


def get_inputs():
    return [
        torch.randn(8, 4, 14, 512),
        torch.rand(8, 4, 14) + 0.5,
    ]


def get_init_inputs():
    return []
