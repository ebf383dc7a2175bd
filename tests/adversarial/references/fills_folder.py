"""Makes a file of 1.5 GiB in its folder, without data."""

import os

import torch
import torch.nn as nn

SIZE = 3 * 2**29

try:
    with open("fill", "wb") as file:
        file.truncate(SIZE)
    made = os.path.getsize("fill")
    os.unlink("fill")
except OSError:
    made = 0
if made:
    raise RuntimeError(f"breached: made a file of {made} bytes")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
