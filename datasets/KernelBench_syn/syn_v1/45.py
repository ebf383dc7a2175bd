import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mv, softplus, add, log2, layer norm, relu."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(256))
        self.layer_norm_2 = nn.LayerNorm(256)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.mv(x, self.weight_1)
        h2 = F.softplus(h1) + 0.1
        h3 = torch.log2(h2)
        h4 = self.layer_norm_2(h3)
        return F.relu(h4)


def get_inputs():
    return [
        torch.randn(256, 256),
    ]


def get_init_inputs():
    return []
