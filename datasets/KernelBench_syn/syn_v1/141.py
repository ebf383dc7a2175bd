import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Permute, square, selu."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = x.permute(0, 2, 3, 1).contiguous()
        h2 = torch.square(h1)
        return F.selu(h2)


def get_inputs():
    return [
        torch.randn(64, 4, 14, 24),
    ]


def get_init_inputs():
    return []
