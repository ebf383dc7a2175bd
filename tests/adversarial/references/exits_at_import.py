"""Ends its process while it is imported."""

import os

import torch
import torch.nn as nn

os._exit(0)


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
