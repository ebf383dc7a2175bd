"""A mean squared error: about two for any two random normal tensors."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 16, 4096  # gpu: 4096, 8192


class Model(nn.Module):
    def __init__(self):
        super().__init__()

    def forward(self, predictions, targets):
        return torch.mean((predictions - targets) ** 2)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS), torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return []
