"""Makes system calls that reach deep into the kernel."""

import ctypes
import os
import platform

import torch
import torch.nn as nn

X86 = platform.machine() == "x86_64"
CALLS = {  # name: number on x86-64, number on aarch64, arguments
    "io_uring_setup": (425, 425, 1, bytes(120)),
    "bpf": (321, 280, 0, b"\2\0\0\0\4\0\0\0\4\0\0\0\1\0\0\0" + bytes(112), 128),
    "userfaultfd": (323, 282, 0),
    "perf_event_open": (298, 241, b"\1\0\0\0\x80\0\0\0" + bytes(120), 0, -1, -1, 0),
    "keyctl": (250, 219, 1, 0),
}
libc = ctypes.CDLL(None)


def works(numbers, arguments):
    made = libc.syscall(numbers[0 if X86 else 1], *arguments)
    if made > 2 and arguments[0] != 1:
        os.close(made)
    return made >= 0


done = [name for name, (x86, arm, *arguments) in CALLS.items() if works((x86, arm), arguments)]
if done:
    raise RuntimeError(f"breached: {', '.join(done)}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
