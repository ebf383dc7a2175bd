import torch
import torch.nn as nn


class Model(nn.Module):
    """A small residual multi-layer perceptron with normalisation in front."""

    def __init__(self, features: int, hidden: int):
        super().__init__()
        self.norm = nn.LayerNorm(features)
        self.up = nn.Linear(features, hidden)
        self.activation = nn.GELU(approximate="tanh")
        self.down = nn.Linear(hidden, features)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        y = self.activation(self.up(y))
        return x + self.down(y)


batch, features, hidden = 48, 32, 64


def get_inputs():
    return [torch.randn(batch, features)]


def get_init_inputs():
    return [features, hidden]
