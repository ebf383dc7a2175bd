import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Mm, mul, gaussian nll loss, matmul."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.1021 * torch.randn(96, 128))
        self.weight_2 = nn.Parameter(0.0884 * torch.randn(128, 32))

    def forward(self, x: torch.Tensor, x1: torch.Tensor, x2: torch.Tensor) -> torch.Tensor:
        h1 = torch.mm(x, self.weight_1)
        h2 = h1 * x1
        h3 = F.gaussian_nll_loss(h2, x1, x2, reduction="none")
        return torch.matmul(h3, self.weight_2)


def get_inputs():
    return [
        torch.randn(512, 96),
        torch.randn(512, 128),
        torch.rand(512, 128) + 0.5,
    ]


def get_init_inputs():
    return []
