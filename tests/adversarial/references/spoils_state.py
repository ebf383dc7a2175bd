"""Opens the judge's state file and its file of tokens for writing; it does not write."""

import contextlib
import os

import torch
import torch.nn as nn

FILES = []  # given

for name in FILES:
    with contextlib.suppress(OSError):
        os.close(os.open(name, os.O_WRONLY))
        raise RuntimeError(f"breached: can write {name}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
