import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Batch norm2d, grid sample, local response norm."""

    def __init__(self):
        super().__init__()
        self.batch_norm2d_1 = nn.BatchNorm2d(64)
        self.local_response_norm_2 = nn.LocalResponseNorm(5)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.batch_norm2d_1(x)
        h2 = F.grid_sample(h1, torch.tanh(x1), align_corners=False)
        return self.local_response_norm_2(h2)


def get_inputs():
    return [
        torch.randn(4, 64, 28, 28),
        torch.randn(4, 8, 8, 2),
    ]


def get_init_inputs():
    return []
