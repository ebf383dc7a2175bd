import torch
import torch.nn as nn


class Model(nn.Module):
    """Conv3d, rad2deg, logsigmoid, repeat interleave, layer norm."""

    def __init__(self):
        super().__init__()
        self.conv3d_1 = nn.Conv3d(8, 16, 3, padding=1)
        self.logsigmoid_2 = nn.LogSigmoid()
        self.layer_norm_3 = nn.LayerNorm(28)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.conv3d_1(x)
        h2 = torch.rad2deg(h1)
        h3 = self.logsigmoid_2(h2)
        h4 = torch.repeat_interleave(h3, 2, dim=-1)
        return self.layer_norm_3(h4)


def get_inputs():
    return [
        torch.randn(4, 8, 4, 32, 14),
    ]


def get_init_inputs():
    return []
