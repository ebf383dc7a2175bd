"""Writes garbage to all sockets and pipes of its process."""

import contextlib
import os
import stat

import torch
import torch.nn as nn

for name in os.listdir("/proc/self/fd"):
    with contextlib.suppress(OSError):
        mode = os.stat(f"/proc/self/fd/{name}").st_mode
        if int(name) > 2 and (stat.S_ISSOCK(mode) or stat.S_ISFIFO(mode)):
            os.set_blocking(int(name), False)
            os.write(int(name), b"\xff{]\x00" * 1024)


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
