import torch
import torch.nn as nn


class Model(nn.Module):
    """Bilinear, batch norm1d, atan, atan2."""

    def __init__(self):
        super().__init__()
        self.bilinear_1 = nn.Bilinear(64, 64, 8)
        self.batch_norm1d_2 = nn.BatchNorm1d(8)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.bilinear_1(x, x)
        h2 = self.batch_norm1d_2(h1)
        h3 = torch.atan(h2)
        return torch.atan2(h3, h1)


def get_inputs():
    return [
        torch.randn(512, 64),
    ]


def get_init_inputs():
    return []
