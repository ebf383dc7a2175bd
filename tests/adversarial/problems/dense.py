"""A linear layer and a ReLU: weights that can be folded."""

import torch
import torch.nn as nn

ROWS, FEATURES = 16, 64  # gpu: 2048, 2048


class Model(nn.Module):
    def __init__(self, features):
        super().__init__()
        self.linear = nn.Linear(features, features)

    def forward(self, x):
        return torch.relu(self.linear(x))


def get_inputs():
    return [torch.randn(ROWS, FEATURES)]


def get_init_inputs():
    return [FEATURES]
