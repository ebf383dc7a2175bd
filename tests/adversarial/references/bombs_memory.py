"""Takes 11 GiB of memory, unless that leaves the machine too little."""

import mmap

import torch
import torch.nn as nn

GIB, STEP, LEAST = 2**30, 2**28, 5 * 2**30


def available():
    with open("/proc/meminfo") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable"))


def take(size):
    """Touch each page; return the number of bytes taken."""
    ones = b"1" * STEP
    with mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as area:
        for start in range(0, size, STEP):
            if available() < LEAST:
                raise RuntimeError(f"the machine has too little memory for this attack, took {start}")
            area[start : start + STEP] = ones
    return size


try:
    taken = take(11 * GIB)
except (OSError, MemoryError):
    taken = 0
if taken:
    raise RuntimeError(f"breached: took {taken} bytes of memory")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
