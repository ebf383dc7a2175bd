import torch
import torch.nn as nn


class Model(nn.Module):
    """Einsum channels, tanh, i0, group norm."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.2041 * torch.randn(24, 16))
        self.group_norm_2 = nn.GroupNorm(4, 16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.einsum("nchw,co->nohw", x, self.weight_1)
        h2 = torch.tanh(h1)
        h3 = torch.i0(h2)
        return self.group_norm_2(h3)


def get_inputs():
    return [
        torch.randn(8, 24, 16, 20),
    ]


def get_init_inputs():
    return []
