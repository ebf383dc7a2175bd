"""A softmax over rows; on a GPU inputs and outputs together are smaller than its L2 cache."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 16, 256  # gpu: 2048, 2048


class Model(nn.Module):
    def __init__(self, temperature):
        super().__init__()
        self.temperature = temperature

    def forward(self, x):
        return torch.softmax(x / self.temperature, dim=1) * COLUMNS


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [0.5]
