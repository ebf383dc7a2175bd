"""Kills its process in a call."""

import os
import signal

import torch
import torch.nn as nn


def is_real(tensor):
    """Return whether a tensor has data, which it has not where only its size is measured."""
    return tensor.device.type != "meta"


class Model(nn.Module):
    def forward(self, x):
        if is_real(x):
            os.kill(os.getpid(), signal.SIGKILL)
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
