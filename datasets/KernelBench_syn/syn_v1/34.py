import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Bmm, logsigmoid, layer norm, celu, select, lerp."""

    def __init__(self):
        super().__init__()
        self.layer_norm_1 = nn.LayerNorm(32)
        self.celu_2 = nn.CELU(alpha=1.0)
        self.weight_3 = nn.Parameter(torch.randn(8, 32))

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.bmm(x, x1)
        h2 = F.logsigmoid(h1)
        h3 = self.layer_norm_1(h2)
        h4 = self.celu_2(h3)
        h5 = torch.select(h4, 1, 0)
        return torch.lerp(h5, self.weight_3, 0.75)


def get_inputs():
    return [
        torch.randn(8, 64, 192),
        torch.randn(8, 192, 32),
    ]


def get_init_inputs():
    return []
