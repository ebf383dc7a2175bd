import torch
import torch.nn as nn


class Model(nn.Module):
    """Einsum channels, tanh, cumprod, cummax, max pool2d."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.3536 * torch.randn(8, 8))
        self.max_pool2d_2 = nn.MaxPool2d(2, stride=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.einsum("nchw,co->nohw", x, self.weight_1)
        h2 = torch.tanh(h1)
        h3 = torch.cumprod(h2, dim=-1)
        h4 = torch.cummax(h3, dim=-1).values
        return self.max_pool2d_2(h4)


def get_inputs():
    return [
        torch.randn(8, 8, 48, 16),
    ]


def get_init_inputs():
    return []
