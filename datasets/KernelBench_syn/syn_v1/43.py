import torch
import torch.nn as nn


class Model(nn.Module):
    """Threshold, matmul, batch norm1d, softsign, clamp max."""

    def __init__(self):
        super().__init__()
        self.threshold_1 = nn.Threshold(0.25, 0.0)
        self.batch_norm1d_2 = nn.BatchNorm1d(64)
        self.softsign_3 = nn.Softsign()

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.threshold_1(x)
        h2 = torch.matmul(h1, x1)
        h3 = self.batch_norm1d_2(h2)
        h4 = self.softsign_3(h3)
        return torch.clamp_max(h4, 0.5)


def get_inputs():
    return [
        torch.randn(128, 256),
        torch.randn(256, 64),
    ]


def get_init_inputs():
    return []
