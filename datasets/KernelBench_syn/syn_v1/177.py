import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mul scale, softplus, add, log2, norm, leaky relu."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = x * self.weight_1
        h2 = F.softplus(h1) + 0.1
        h3 = torch.log2(h2)
        h4 = torch.norm(h3, p=2, dim=-1, keepdim=True)
        return F.leaky_relu(h4, negative_slope=0.01)


def get_inputs():
    return [
        torch.randn(8, 48, 12, 32),
    ]


def get_init_inputs():
    return []
