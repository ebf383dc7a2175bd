import torch
import torch.nn as nn
import torch.nn.functional as F


class Model(nn.Module):
    """Log softmax, linear, ldexp, softplus, gelu."""

    def __init__(self):
        super().__init__()
        self.linear_1 = nn.Linear(80, 128, bias=True)
        self.softplus_2 = nn.Softplus(beta=2.0)
        self.gelu_3 = nn.GELU(approximate="tanh")

    def forward(self, x: torch.Tensor, x1: torch.Tensor) -> torch.Tensor:
        h1 = F.log_softmax(x, dim=-1)
        h2 = self.linear_1(h1)
        h3 = torch.ldexp(h2, x1)
        h4 = self.softplus_2(h3)
        return self.gelu_3(h4)


def get_inputs():
    return [
        torch.randn(512, 80),
        torch.randn(512, 128),
    ]


def get_init_inputs():
    return []
