import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Local response norm, group norm, softplus, add, rsqrt, sub."""

    def __init__(self):
        super().__init__()
        self.local_response_norm_1 = nn.LocalResponseNorm(3)
        self.group_norm_2 = nn.GroupNorm(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.local_response_norm_1(x)
        h2 = self.group_norm_2(h1)
        h3 = F.softplus(h2) + 0.1
        h4 = torch.rsqrt(h3)
        return h4 - h3


def get_inputs():
    return [
        torch.randn(64, 4, 20, 24),
    ]


def get_init_inputs():
    return []
