import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Renorm, glu, constant pad, hardswish, mv, gelu."""

    def __init__(self):
        super().__init__()
        self.weight_1 = nn.Parameter(torch.randn(260))
        self.gelu_2 = nn.GELU(approximate="tanh")

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        h1 = torch.renorm(x, p=2, dim=0, maxnorm=5.0)
        h2 = F.glu(h1, dim=-1)
        h3 = F.pad(h2, (1, 3), value=0.5)
        h4 = F.hardswish(h3)
        h5 = torch.mv(h4, self.weight_1)
        return self.gelu_2(h5)


def get_inputs():
    return [
        torch.randn(128, 512),
    ]


def get_init_inputs():
    return []
