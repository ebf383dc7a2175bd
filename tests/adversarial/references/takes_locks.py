"""Takes the judge's lock files, by name and through inherited descriptors."""

import contextlib
import fcntl
import glob
import os

import torch
import torch.nn as nn

FOLDER = ""  # given

names = [f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd")]
names += glob.glob(f"{FOLDER}/**/*lock*", recursive=True, include_hidden=True)
for name in names:
    with contextlib.suppress(OSError):
        target = os.path.realpath(name)
        if "lock" in os.path.basename(target) and not os.path.isdir(target):
            with open(name, "rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
                raise RuntimeError(f"breached: holds the lock {os.path.basename(target)}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
