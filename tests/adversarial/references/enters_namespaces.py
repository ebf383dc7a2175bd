"""Makes namespaces of its own, where it would be root."""

import ctypes
import os

import torch
import torch.nn as nn

KINDS = {"user": 0x10000000, "mount": 0x20000, "network": 0x40000000, "process": 0x20000000}


def enters(flag):
    pid = os.fork()
    if pid == 0:
        os._exit(0 if ctypes.CDLL(None).unshare(flag) == 0 else 1)
    return os.waitpid(pid, 0)[1] == 0


entered = [name for name, flag in KINDS.items() if enters(flag)]
if entered:
    raise RuntimeError(f"breached: made namespaces: {', '.join(entered)}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
