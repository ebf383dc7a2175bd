"""A layer norm with new weights, ones and zeros, and a branch behind a new gate, zero."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 16, 256  # gpu: 8192, 4096


class Model(nn.Module):
    def __init__(self, columns):
        super().__init__()
        self.norm = nn.LayerNorm(columns)
        self.gate = nn.Parameter(torch.zeros(1))

    def forward(self, x):
        return self.norm(x) + self.gate * torch.tanh(x)


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [COLUMNS]
