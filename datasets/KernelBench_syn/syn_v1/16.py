import torch
import torch.nn as nn


class Model(nn.Module):
    """Avg pool1d, layer norm, flip."""

    def __init__(self):
        super().__init__()
        self.avg_pool1d_1 = nn.AvgPool1d(2, stride=1)
        self.layer_norm_2 = nn.LayerNorm(127)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.avg_pool1d_1(x)
        h2 = self.layer_norm_2(h1)
        return torch.flip(h2, dims=(-1,))


def get_inputs():
    return [
        torch.randn(128, 4, 128),
    ]


def get_init_inputs():
    return []
