import torch
import torch.nn as nn


class Model(nn.Module):
    """Baddbmm, rms norm, sigmoid, tan, diff, min."""

    def __init__(self):
        super().__init__()
        self.rms_norm_1 = nn.RMSNorm(64, eps=1e-06)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = torch.baddbmm(x1, x, x2)
        h2 = self.rms_norm_1(h1)
        h3 = torch.sigmoid(h2)
        h4 = torch.tan(h3)
        h5 = torch.diff(h4, dim=-1)
        return torch.min(h5, dim=-1).values


def get_inputs():
    return [
        torch.randn(64, 32, 128),
        torch.randn(64, 32, 64),
        torch.randn(64, 128, 64),
    ]


def get_init_inputs():
    return []
