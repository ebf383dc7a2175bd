# mypy: ignore-errors
"""A GRU layer over 32 steps."""

import torch
import torch.nn as nn

BATCH = 64
STEPS = 32
FEATURES = 256
HIDDEN = 256


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.gru = nn.GRU(features, hidden, batch_first=True)

    def forward(self, x):
        return self.gru(x)[0]


def get_inputs():
    return [torch.randn(BATCH, STEPS, FEATURES)]


def get_init_inputs():
    return [FEATURES, HIDDEN]
