import torch
import torch.nn as nn


class Model(nn.Module):
    """Zero pad2d, exp2, layer norm, transpose."""

    def __init__(self):
        super().__init__()
        self.zero_pad2d_1 = nn.ZeroPad2d(1)
        self.layer_norm_2 = nn.LayerNorm(34)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.zero_pad2d_1(x)
        h2 = torch.exp2(h1)
        h3 = self.layer_norm_2(h2)
        return h3.transpose(-2, -1).contiguous()


def get_inputs():
    return [
        torch.randn(4, 48, 32, 32),
    ]


def get_init_inputs():
    return []
