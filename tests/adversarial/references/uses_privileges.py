"""Does what only a privileged process can do, in a child."""

import os
from pathlib import Path

import torch
import torch.nn as nn

WAYS = {
    "became another user": lambda: os.setresuid(12345, 12345, 12345),
    "changed its groups": lambda: os.setgroups([12345]),
    "changed its root": lambda: os.chroot("."),
    "made a device": lambda: os.mknod("device", 0o20600, os.makedev(1, 1)),
    "raised its priority": lambda: os.nice(-5),
    "became a real-time process": lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)),
    "cannot be chosen when memory is short": lambda: write("/proc/self/oom_score_adj", b"-1000"),
}


def write(name, text):
    fd = os.open(name, os.O_WRONLY)
    os.write(fd, text)


def works(way):
    pid = os.fork()
    if pid == 0:
        try:
            way()
            os._exit(0)
        finally:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


done = [name for name, way in WAYS.items() if works(way)]
if "CapEff:\t0000000000000000" not in Path("/proc/self/status").read_text():
    done.append("has capabilities")
if done:
    raise RuntimeError(f"breached: {', '.join(done)}")


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
