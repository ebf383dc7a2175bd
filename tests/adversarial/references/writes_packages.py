"""Opens files of Python's packages and of the judge for writing; it does not write."""

import contextlib
import os
import sys

import torch
import torch.nn as nn

for module in list(sys.modules.values()):
    name = getattr(module, "__file__", None)
    with contextlib.suppress(OSError, TypeError):
        os.close(os.open(name, os.O_WRONLY))
        raise RuntimeError(f"breached: can write {os.path.basename(name)} of {module.__name__}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
