import torch
import torch.nn as nn


class Model(nn.Module):
    """Topk, group norm, mish."""

    def __init__(self):
        super().__init__()
        self.group_norm_1 = nn.GroupNorm(2, 4)
        self.mish_2 = nn.Mish()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.topk(x, 8, dim=-1).values
        h2 = self.group_norm_1(h1)
        return self.mish_2(h2)


def get_inputs():
    return [
        torch.randn(16, 4, 32, 48),
    ]


def get_init_inputs():
    return []
