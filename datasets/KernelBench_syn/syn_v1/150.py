import torch
import torch.nn as nn


class Model(nn.Module):
    """Softmax, cosh, sigmoid, tan, addcmul."""

    def __init__(self):
        super().__init__()
        self.softmax_1 = nn.Softmax(dim=-1)

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = self.softmax_1(x)
        h2 = torch.cosh(h1)
        h3 = torch.sigmoid(h2)
        h4 = torch.tan(h3)
        return torch.addcmul(h4, h2, x1, value=1.0)


def get_inputs():
    return [
        torch.randn(128, 16, 48),
        torch.randn(128, 16, 48),
    ]


def get_init_inputs():
    return []
