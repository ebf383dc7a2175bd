import torch
import torch.nn as nn


class Model(nn.Module):
    """Bmm, selu, conv1d."""

    def __init__(self):
        super().__init__()
        self.selu_1 = nn.SELU()
        self.conv1d_2 = nn.Conv1d(32, 32, 3, padding=3 // 2)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.bmm(x, x1)
        h2 = self.selu_1(h1)
        return self.conv1d_2(h2)


def get_inputs():
    return [
        torch.randn(128, 32, 32),
        torch.randn(128, 32, 64),
    ]


def get_init_inputs():
    return []
