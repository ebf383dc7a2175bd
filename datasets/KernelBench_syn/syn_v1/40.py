import torch
import torch.nn as nn


class Model(nn.Module):
    """Kron, ndtr, layer norm, batch norm1d, abs."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.7071 * torch.randn(2, 2))
        self.layer_norm_2 = nn.LayerNorm(1024)
        self.batch_norm1d_3 = nn.BatchNorm1d(1024)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.kron(x, self.weight_1)
        h2 = torch.special.ndtr(h1)
        h3 = self.layer_norm_2(h2)
        h4 = self.batch_norm1d_3(h3)
        return torch.abs(h4)


def get_inputs():
    return [
        torch.randn(512, 512),
    ]


def get_init_inputs():
    return []
