"""Leaves a key in the kernel for later jobs."""

import ctypes
import platform

import torch
import torch.nn as nn

X86 = platform.machine() == "x86_64"
ADD_KEY, KEYCTL = (248, 250) if X86 else (217, 219)
SESSION, USER, SET_TIMEOUT = -3, -4, 15
libc = ctypes.CDLL(None)

for ring in (SESSION, USER):
    key = libc.syscall(ADD_KEY, b"user", b"left-by-a-reference", b"word", 4, ring)
    if key > 0:
        libc.syscall(KEYCTL, SET_TIMEOUT, key, 20)
        raise RuntimeError(f"breached: left a key in ring {ring}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
