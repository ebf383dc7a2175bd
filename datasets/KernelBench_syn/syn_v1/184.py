import torch
import torch.nn as nn


class Model(nn.Module):
    """Exp, sqrt, hypot, nan to num, conv transpose2d, group norm."""

    def __init__(self):
        super().__init__()
        self.conv_transpose2d_1 = nn.ConvTranspose2d(4, 4, 4, stride=2, padding=1)
        self.group_norm_2 = nn.GroupNorm(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.exp(x)
        h2 = torch.sqrt(h1)
        h3 = torch.hypot(h2, h1)
        h4 = torch.nan_to_num(h3, nan=0.0)
        h5 = self.conv_transpose2d_1(h4)
        return self.group_norm_2(h5)


def get_inputs():
    return [
        torch.randn(4, 4, 32, 64),
    ]


def get_init_inputs():
    return []
