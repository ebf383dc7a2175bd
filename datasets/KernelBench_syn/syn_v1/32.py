import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Sum keepdim, softshrink, rms norm, softplus, add, rsqrt."""

    def __init__(self):
        super().__init__()
        self.softshrink_1 = nn.Softshrink(0.1)
        self.rms_norm_2 = nn.RMSNorm(24, eps=1e-06)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.sum(x, dim=1, keepdim=True)
        h2 = self.softshrink_1(h1)
        h3 = self.rms_norm_2(h2)
        h4 = F.softplus(h3) + 0.1
        return torch.rsqrt(h4)


def get_inputs():
    return [
        torch.randn(128, 4, 16, 24),
    ]


def get_init_inputs():
    return []
