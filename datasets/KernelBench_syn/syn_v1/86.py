import torch
import torch.nn as nn


class Model(nn.Module):
    """Kron, hardsigmoid, mv, sin, cosh, scale."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(0.7071 * torch.randn(2, 2))
        self.hardsigmoid_2 = nn.Hardsigmoid()
        self.weight_3 = nn.Parameter(torch.randn(768))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.kron(x, self.weight_1)
        h2 = self.hardsigmoid_2(h1)
        h3 = torch.mv(h2, self.weight_3)
        h4 = torch.sin(h3)
        h5 = torch.cosh(h4)
        return h5 * 2.0


def get_inputs():
    return [
        torch.randn(512, 384),
    ]


def get_init_inputs():
    return []
