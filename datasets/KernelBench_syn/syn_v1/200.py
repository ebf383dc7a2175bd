import torch
import torch.nn as nn


class Model(nn.Module):
    """Kron, mv, log softmax."""

    def __init__(self):
        super().__init__()
        self.log_softmax_1 = nn.LogSoftmax(dim=-1)

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = torch.kron(x, x1)
        h2 = torch.mv(h1, x2)
        return self.log_softmax_1(h2)


def get_inputs():
    return [
        torch.randn(512, 64),
        torch.randn(2, 2),
        torch.randn(128),
    ]


def get_init_inputs():
    return []
