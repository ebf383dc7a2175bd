import torch
import torch.nn as nn


class Model(nn.Module):
    """Diagonal, layer norm, renorm."""

    def __init__(self):
        super().__init__()
        self.layer_norm_1 = nn.LayerNorm(128)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.diagonal(x, dim1=-2, dim2=-1)
        h2 = self.layer_norm_1(h1)
        return torch.renorm(h2, p=2, dim=0, maxnorm=5.0)


def get_inputs():
    return [
        torch.randn(8, 128, 128),
    ]


def get_init_inputs():
    return []
