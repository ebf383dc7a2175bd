# mypy: ignore-errors
"""Eight linear layers with GELU between them."""

import torch
import torch.nn as nn

BATCH = 512
FEATURES = 1024
LAYERS = 8


class Model(nn.Module):
    def __init__(self, features, layers):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(features, features) for _ in range(layers))
        for layer in self.layers:
            nn.init.normal_(layer.weight, std=(2 / features) ** 0.5)

    def forward(self, x):
        for layer in self.layers[:-1]:
            x = nn.functional.gelu(layer(x))
        return self.layers[-1](x)


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES, LAYERS]
