"""Changes what the kernel keeps of its process: folder, limits, priority, signals."""

import contextlib
import os
import resource
import signal

import torch
import torch.nn as nn

with contextlib.suppress(OSError):
    os.nice(10)
with contextlib.suppress(OSError):
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
os.chdir("/")
os.umask(0o777)
os.environ.clear()
os.environ["LD_PRELOAD"] = "/left-by-a-reference.so"
for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGALRM):
    signal.signal(number, signal.SIG_IGN)
for kind, soft in ((resource.RLIMIT_NOFILE, 24), (resource.RLIMIT_FSIZE, 0), (resource.RLIMIT_NPROC, 1)):
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(kind, (soft, soft))


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
