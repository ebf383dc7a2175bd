"""Closes all files and connections of its process."""

import os

import torch
import torch.nn as nn

os.closerange(0, 4096)


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
