import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Fix, mish, hardtanh, rms norm, nansum."""

    def __init__(self):
        super().__init__()
        self.hardtanh_1 = nn.Hardtanh(-1.0, 1.0)
        self.rms_norm_2 = nn.RMSNorm(192, eps=1e-06)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.fix(x)
        h2 = F.mish(h1)
        h3 = self.hardtanh_1(h2)
        h4 = self.rms_norm_2(h3)
        return torch.nansum(h4, dim=-1)


def get_inputs():
    return [
        torch.randn(8, 8, 20, 192),
    ]


def get_init_inputs():
    return []
