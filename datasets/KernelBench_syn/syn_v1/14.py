import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Hardtanh, modified bessel i1, relu, leaky relu, rms norm."""

    def __init__(self):
        super().__init__()
        self.relu_1 = nn.ReLU()
        self.rms_norm_2 = nn.RMSNorm(512, eps=1e-06)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = F.hardtanh(x, min_val=-0.5, max_val=1.0)
        h2 = torch.special.modified_bessel_i1(h1)
        h3 = self.relu_1(h2)
        h4 = F.leaky_relu(h3, negative_slope=0.01)
        return self.rms_norm_2(h4)


def get_inputs():
    return [
        torch.randn(256, 512),
    ]


def get_init_inputs():
    return []
