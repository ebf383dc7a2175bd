"""Reads memory of the judge's processes and of a stranger, in four ways."""

import contextlib
import ctypes
import os
import platform

import torch
import torch.nn as nn

PROCESSES = []  # given

X86 = platform.machine() == "x86_64"
PTRACE, READ_MEMORY = (101, 310) if X86 else (117, 270)
SEIZE, DETACH = 0x4206, 17
PIDFD_OPEN, PIDFD_GETFD = 434, 438
libc = ctypes.CDLL(None)


def ways_in(pid):
    if libc.syscall(PTRACE, SEIZE, pid, None, None) == 0:
        libc.syscall(PTRACE, DETACH, pid, None, None)
        yield "traced"
    with contextlib.suppress(OSError), open(f"/proc/{pid}/mem", "rb", 0):
        yield "opened the memory of"
    if read_memory(pid):
        yield "read the memory of"
    process = libc.syscall(PIDFD_OPEN, pid, 0)
    if process >= 0 and libc.syscall(PIDFD_GETFD, process, 0, 0) >= 0:
        yield "took a descriptor of"


def read_memory(pid):
    with contextlib.suppress(OSError), open(f"/proc/{pid}/maps") as maps:
        here = ctypes.create_string_buffer(8)
        low = int(maps.readline().split("-")[0], 16)
        ours = (ctypes.c_size_t * 2)(ctypes.addressof(here), 8)
        theirs = (ctypes.c_size_t * 2)(low, 8)
        return libc.syscall(READ_MEMORY, pid, ours, 1, theirs, 1, 0) == 8
    return False


for pid in PROCESSES:
    if done := list(ways_in(pid)):
        raise RuntimeError(f"breached: {', '.join(done)} another process {os.getpid()}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
