import torch
import torch.nn as nn


class Model(nn.Module):
    """Mul, select, rms norm, sigmoid, acos."""

    def __init__(self):
        super().__init__()
        self.rms_norm_1 = nn.RMSNorm(64, eps=1e-06)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = x * x1
        h2 = torch.select(h1, 1, 0)
        h3 = self.rms_norm_1(h2)
        h4 = torch.sigmoid(h3)
        return torch.acos(h4)


def get_inputs():
    return [
        torch.randn(8, 128, 64),
        torch.randn(8, 128, 64),
    ]


def get_init_inputs():
    return []
