import torch
import torch.nn as nn


class Model(nn.Module):
    """Expm1, rad2deg, lerp, triu, mv."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(512))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.expm1(x)
        h2 = torch.rad2deg(h1)
        h3 = torch.lerp(h2, x, 0.5)
        h4 = torch.triu(h3, diagonal=1)
        return torch.mv(h4, self.weight_1)


def get_inputs():
    return [
        torch.randn(128, 512),
    ]


def get_init_inputs():
    return []
