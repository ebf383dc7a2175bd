import torch
import torch.nn as nn


class Model(nn.Module):
    """Split heads, selu, layer norm."""

    def __init__(self):
        super().__init__()
        self.selu_1 = nn.SELU()
        self.layer_norm_2 = nn.LayerNorm(64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = x.reshape(16, 100, 2, 128 // 2).transpose(1, 2)
        h2 = self.selu_1(h1)
        return self.layer_norm_2(h2)


def get_inputs():
    return [
        torch.randn(16, 100, 128),
    ]


def get_init_inputs():
    return []
