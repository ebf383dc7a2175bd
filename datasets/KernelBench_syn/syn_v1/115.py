import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Softmax channels, layer norm, softplus, add, sqrt."""

    def __init__(self):
        super().__init__()
        self.layer_norm_1 = nn.LayerNorm(20)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.softmax(x, dim=1)
        h2 = self.layer_norm_1(h1)
        h3 = F.softplus(h2) + 0.1
        return torch.sqrt(h3)


def get_inputs():
    return [
        torch.randn(8, 48, 32, 20),
    ]


def get_init_inputs():
    return []
