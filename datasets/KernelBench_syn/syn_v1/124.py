import torch
import torch.nn as nn


class Model(nn.Module):
    """Mean spatial, cat, batch norm1d, mul scale."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(16, 16))
        self.batch_norm1d_2 = nn.BatchNorm1d(32)
        self.weight_3 = nn.Parameter(torch.randn(32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.mean(x, dim=(2, 3))
        h2 = torch.cat([h1, self.weight_1], dim=-1)
        h3 = self.batch_norm1d_2(h2)
        return h3 * self.weight_3


def get_inputs():
    return [
        torch.randn(16, 16, 8, 16),
    ]


def get_init_inputs():
    return []
