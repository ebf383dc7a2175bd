import torch
import torch.nn as nn


class Model(nn.Module):
    """Outer product, log softmax, softmax."""

    def __init__(self):
        super().__init__()
        self.log_softmax_1 = nn.LogSoftmax(dim=-1)
        self.softmax_2 = nn.Softmax(dim=-1)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.einsum("nd,np->ndp", x, x1)
        h2 = self.log_softmax_1(h1)
        return self.softmax_2(h2)


def get_inputs():
    return [
        torch.randn(512, 80),
        torch.randn(512, 8),
    ]


def get_init_inputs():
    return []
