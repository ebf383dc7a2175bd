"""Reads address 0 when inputs are made."""

import ctypes

import torch
import torch.nn as nn


def is_real(tensor):
    """Return whether a tensor has data, which it has not where only its size is measured."""
    return tensor.device.type != "meta"


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    if is_real(torch.empty(1)):
        ctypes.string_at(0)
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
