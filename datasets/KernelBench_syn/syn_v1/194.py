import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mm, softplus, add, modified bessel k1."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.0625 * torch.randn(256, 128))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.mm(x, self.weight_1)
        h2 = F.softplus(h1) + 0.1
        return torch.special.modified_bessel_k1(h2)


def get_inputs():
    return [
        torch.randn(512, 256),
    ]


def get_init_inputs():
    return []
