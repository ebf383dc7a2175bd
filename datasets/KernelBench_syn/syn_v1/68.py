import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Cdist, bilinear, sigmoid, normalize, batch norm1d."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(64, 96))
        self.bilinear_2 = nn.Bilinear(64, 64, 16)
        self.batch_norm1d_3 = nn.BatchNorm1d(16)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.cdist(x, self.weight_1)
        h2 = self.bilinear_2(h1, h1)
        h3 = torch.sigmoid(h2)
        h4 = F.normalize(h3, p=2, dim=-1)
        return self.batch_norm1d_3(h4)


def get_inputs():
    return [
        torch.randn(512, 96),
    ]


def get_init_inputs():
    return []
