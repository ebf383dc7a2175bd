import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Hardtanh, advanced index, scaled dot product attention, cummin."""

    def __init__(self):
        super().__init__()
        self.hardtanh_1 = nn.Hardtanh(-1.0, 2.0)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = self.hardtanh_1(x)
        h2 = h1[:, x1]
        h3 = F.scaled_dot_product_attention(h2, h1, x2)
        return torch.cummin(h3, dim=-1).values


def get_inputs():
    return [
        torch.randn(4, 16, 28, 128),
        torch.randint(0, 16, (16,)),
        torch.randn(4, 16, 28, 128),
    ]


def get_init_inputs():
    return []
