"""A dictionary of tensors and an argument that is None."""

import torch
import torch.nn as nn


class Model(nn.Module):
    def __init__(self, features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, batch, residual=None):
        x = torch.relu(self.linear(batch["x"]) * batch["scale"])
        if residual is not None:
            x = x + residual
        return torch.tanh(x)


def get_inputs():
    return [{"x": torch.randn(16, 32), "scale": torch.rand(16, 32)}, None]


def get_init_inputs():
    return [32]
