"""Attaches a System V segment and opens a file in /dev/shm, both of another process."""

import contextlib
import ctypes

import torch
import torch.nn as nn

SEGMENT = 0  # given
SHARED_FILE = ""  # given

if SEGMENT and ctypes.CDLL(None).shmget(SEGMENT, 0, 0) >= 0:
    raise RuntimeError("breached: found a segment of shared memory")
with contextlib.suppress(OSError), open(SHARED_FILE, "rb"):
    raise RuntimeError("breached: read a file in shared memory")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
