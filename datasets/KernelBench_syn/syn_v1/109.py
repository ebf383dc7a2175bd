import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mean tokens, matmul, linear, softplus, add, log2."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.1021 * torch.randn(96, 64))
        self.linear_2 = nn.Linear(64, 64, bias=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.mean(x, dim=1)
        h2 = torch.matmul(h1, self.weight_1)
        h3 = self.linear_2(h2)
        h4 = F.softplus(h3) + 0.1
        return torch.log2(h4)


def get_inputs():
    return [
        torch.randn(32, 64, 96),
    ]


def get_init_inputs():
    return []
