# mypy: ignore-errors
"""A SwiGLU block with a residual connection."""

import torch
import torch.nn as nn

BATCH = 1024
FEATURES = 512
HIDDEN = 1024


class Model(nn.Module):
    def __init__(self, features, hidden):
        super().__init__()
        self.w1 = nn.Parameter(torch.randn(features, hidden) * features**-0.5)
        self.w2 = nn.Parameter(torch.randn(features, hidden) * features**-0.5)
        self.w3 = nn.Parameter(torch.randn(hidden, features) * hidden**-0.5)

    def forward(self, x):
        return x + (x @ self.w1 * nn.functional.silu(x @ self.w2)) @ self.w3


def get_inputs():
    return [torch.randn(BATCH, FEATURES)]


def get_init_inputs():
    return [FEATURES, HIDDEN]
