"""Opens files that change the kernel for writing; it does not write."""

import contextlib
import os

import torch
import torch.nn as nn

FILES = (
    "/dev/kmsg",
    "/proc/sysrq-trigger",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/modprobe",
    "/sys/fs/cgroup/cgroup.procs",
    "/sys/fs/cgroup/memory/cgroup.procs",
    "/sys/fs/cgroup/devices/devices.allow",
    "/sys/kernel/uevent_helper",
)

for name in FILES:
    with contextlib.suppress(OSError):
        os.close(os.open(name, os.O_WRONLY))
        raise RuntimeError(f"breached: can write {name}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
