import torch
import torch.nn as nn


class Model(nn.Module):
    """Min, sigmoid, rms norm."""

    def __init__(self):
        super().__init__()
        self.sigmoid_1 = nn.Sigmoid()
        self.rms_norm_2 = nn.RMSNorm(512, eps=1e-06)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.min(x, dim=-1).values
        h2 = self.sigmoid_1(h1)
        return self.rms_norm_2(h2)


def get_inputs():
    return [
        torch.randn(512, 96),
    ]


def get_init_inputs():
    return []
