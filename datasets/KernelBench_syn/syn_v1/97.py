import torch
import torch.nn as nn


class Model(nn.Module):
    """Ldexp, cumsum, lerp, gather."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(128, 256))

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = torch.ldexp(x, self.weight_1)
        h2 = torch.cumsum(h1, dim=-1)
        h3 = torch.lerp(h2, h1, 0.5)
        return torch.gather(h3, -1, x1)


def get_inputs():
    return [
        torch.randn(128, 256),
        torch.randint(0, 256, (128, 128)),
    ]


def get_init_inputs():
    return []
