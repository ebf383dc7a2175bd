"""An honest problem that fails in a process that another problem has changed."""

import gc
import os
import resource
import signal
import sys

import torch
import torch.nn as nn

ROWS = 8  # gpu: 8192


def changes():
    """Return what another problem may have changed, each with whether it has."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    largest, _ = resource.getrlimit(resource.RLIMIT_FSIZE)
    mask = os.umask(0o22)
    os.umask(mask)
    return {
        "working folder": os.getcwd() == "/",
        "niceness": os.nice(0) > 0,
        "open files": soft < 256,
        "file size": 0 <= largest < 2**20,
        "file mode": mask == 0o777,
        "environment": "LD_PRELOAD" in os.environ,
        "signals": signal.getsignal(signal.SIGALRM) == signal.SIG_IGN,
        "hooks": sys.gettrace() is not None or sys.getprofile() is not None,
        "recursion limit": sys.getrecursionlimit() < 1000,
        "thread switches": sys.getswitchinterval() > 1,
        "garbage collection": not gc.isenabled(),
        "import system": not sys.meta_path,
        "default dtype": torch.get_default_dtype() != torch.float32,
    }


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    if found := [name for name, changed in changes().items() if changed]:
        raise RuntimeError(f"breached: changed by another problem: {', '.join(found)}")
    return [torch.randn(ROWS, 16)]


def get_init_inputs():
    return []
