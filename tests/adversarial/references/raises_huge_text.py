"""Raises an exception with 64 MB of text."""

import torch
import torch.nn as nn

raise ValueError("a reference's own text " + "x" * 2**26)


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
