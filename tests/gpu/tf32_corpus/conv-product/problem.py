# mypy: ignore-errors
"""A 3x3 convolution, ReLU, and a linear layer on all of its output."""

import torch
import torch.nn as nn

BATCH = 64
CHANNELS = 16
FILTERS = 32
SIDE = 16
OUTPUTS = 256


class Model(nn.Module):
    def __init__(self, channels, filters, side, outputs):
        super().__init__()
        self.conv = nn.Conv2d(channels, filters, 3, padding=1)
        self.fc = nn.Linear(filters * side * side, outputs)

    def forward(self, x):
        return self.fc(torch.relu(self.conv(x)).flatten(1))


def get_inputs():
    return [torch.randn(BATCH, CHANNELS, SIDE, SIDE)]


def get_init_inputs():
    return [CHANNELS, FILTERS, SIDE, OUTPUTS]
