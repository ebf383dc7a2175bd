import torch
import torch.nn as nn


class Model(nn.Module):
    """Repeat, abs, mv."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(1024))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = x.repeat(1, 2)
        h2 = torch.abs(h1)
        return torch.mv(h2, self.weight_1)


def get_inputs():
    return [
        torch.randn(128, 512),
    ]


def get_init_inputs():
    return []
