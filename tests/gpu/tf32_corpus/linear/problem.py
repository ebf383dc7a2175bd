# mypy: ignore-errors
"""One linear layer."""

import torch
import torch.nn as nn

BATCH = 512
FEATURES = 1024
OUTPUTS = 1024


class Model(nn.Module):
    def __init__(self, features, outputs):
        super().__init__()
        self.fc = nn.Linear(features, outputs)

    def forward(self, x):
        return self.fc(x)


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES, OUTPUTS]
