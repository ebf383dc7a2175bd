"""A gate as in ``gate``, on few elements: a call takes as long as its launches."""

import torch
import torch.nn as nn

ROWS, COLUMNS = 8, 256  # gpu: 16, 256


class Model(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.scale = nn.Parameter(torch.full((1,), scale))

    def forward(self, x):
        return torch.sigmoid(torch.relu(x) * self.scale + 1.0) * x


def get_inputs():
    return [torch.randn(ROWS, COLUMNS)]


def get_init_inputs():
    return [0.5]
