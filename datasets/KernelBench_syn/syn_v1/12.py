import torch
import torch.nn as nn


class Model(nn.Module):
    """Topk, abs, relu."""

    def __init__(self):
        super().__init__()
        self.relu_1 = nn.ReLU()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.topk(x, 8, dim=-1).values
        h2 = torch.abs(h1)
        return self.relu_1(h2)


def get_inputs():
    return [
        torch.randn(128, 384),
    ]


def get_init_inputs():
    return []
