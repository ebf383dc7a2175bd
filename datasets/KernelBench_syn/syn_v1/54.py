import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Hardswish, linear, cosine similarity."""

    def __init__(self):
        super().__init__()
        self.hardswish_1 = nn.Hardswish()
        self.linear_2 = nn.Linear(192, 128, bias=True)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.hardswish_1(x)
        h2 = self.linear_2(h1)
        return F.cosine_similarity(h2, x1, dim=-1)


def get_inputs():
    return [
        torch.randn(32, 4, 8, 192),
        torch.randn(32, 4, 8, 128),
    ]


def get_init_inputs():
    return []
