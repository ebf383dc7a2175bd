# mypy: ignore-errors
"""A LSTM layer over 16 steps."""

import torch
import torch.nn as nn

BATCH = 64
STEPS = 16
FEATURES = 256
HIDDEN = 256


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.lstm = nn.LSTM(features, hidden, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


def get_inputs():
    return [torch.randn(BATCH, STEPS, FEATURES)]


def get_init_inputs():
    return [FEATURES, HIDDEN]
