"""Changes the modules of other problems that are loaded in its process."""

import gc

import torch
import torch.nn as nn

for found in gc.get_objects():
    if isinstance(found, nn.Module) and isinstance(getattr(found, "linear", None), nn.Linear):
        found.forward = found.linear.forward


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
