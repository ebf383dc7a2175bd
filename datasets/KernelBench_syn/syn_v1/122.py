import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mm, tanh, exp2, selu, matmul, std."""

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = torch.mm(x, x1)
        h2 = torch.tanh(h1)
        h3 = torch.exp2(h2)
        h4 = F.selu(h3)
        h5 = torch.matmul(h4, x2)
        return torch.std(h5, dim=-1, unbiased=False)


def get_inputs():
    return [
        torch.randn(64, 512),
        torch.randn(512, 64),
        torch.randn(64, 32),
    ]


def get_init_inputs():
    return []
