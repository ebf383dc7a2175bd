import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Layer norm, celu, cosh, addmm, nansum."""

    def __init__(self):
        super().__init__()
        self.layer_norm_1 = nn.LayerNorm(256)
        self.weight_2 = nn.Parameter(torch.randn(32))
        self.weight_3 = nn.Parameter(0.0625 * torch.randn(256, 32))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = self.layer_norm_1(x)
        h2 = F.celu(h1, alpha=0.5)
        h3 = torch.cosh(h2)
        h4 = torch.addmm(self.weight_2, h3, self.weight_3)
        return torch.nansum(h4, dim=-1)


def get_inputs():
    return [
        torch.randn(128, 256),
    ]


def get_init_inputs():
    return []
