import torch
import torch.nn as nn


class Model(nn.Module):
    """Angle, hypot, neg, avg pool1d, cummax, trapezoid."""

    def __init__(self):
        super().__init__()
        self.avg_pool1d_1 = nn.AvgPool1d(3, stride=2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.angle(x)
        h2 = torch.hypot(h1, x)
        h3 = torch.neg(h2)
        h4 = self.avg_pool1d_1(h3)
        h5 = torch.cummax(h4, dim=-1).values
        return torch.trapezoid(h5, dx=0.1, dim=-1)


def get_inputs():
    return [
        torch.randn(8, 128, 192),
    ]


def get_init_inputs():
    return []
