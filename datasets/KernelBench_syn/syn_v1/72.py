import torch
import torch.nn as nn


class Model(nn.Module):
    """Conv2d pointwise, softsign, rot90, split."""

    def __init__(self):
        super().__init__()
        self.conv2d_pointwise_1 = nn.Conv2d(16, 32, 1)
        self.softsign_2 = nn.Softsign()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.conv2d_pointwise_1(x)
        h2 = self.softsign_2(h1)
        h3 = torch.rot90(h2, 1, dims=(2, 3))
        return torch.split(h3, 24 // 2, dim=-1)[1]


def get_inputs():
    return [
        torch.randn(8, 16, 24, 28),
    ]


def get_init_inputs():
    return []
