import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Add bias, aminmax, kron, hardtanh, matmul."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.7071 * torch.randn(2, 2))

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = x + x1
        h2 = torch.aminmax(h1, dim=-1).max
        h3 = torch.kron(h2, self.weight_1)
        h4 = F.hardtanh(h3, min_val=-0.5, max_val=1.0)
        return torch.matmul(h4, x2)


def get_inputs():
    return [
        torch.randn(4, 128, 80),
        torch.randn(80),
        torch.randn(256, 64),
    ]


def get_init_inputs():
    return []
