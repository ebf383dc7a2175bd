"""Changes what the interpreter does: hooks, limits, import paths, torch's defaults."""

import builtins
import faulthandler
import gc
import locale
import sys
import threading
import warnings

import torch
import torch.nn as nn


def hook(*event):
    return None


sys.settrace(hook)
sys.setprofile(hook)
threading.setprofile(hook)
sys.excepthook = sys.unraisablehook = hook
sys.path.clear()
sys.meta_path.clear()
sys.setswitchinterval(100.0)
sys.setrecursionlimit(100)
gc.disable()
faulthandler.disable()
warnings.simplefilter("error")
locale.setlocale(locale.LC_ALL, "C")
builtins.print = hook
torch.set_default_dtype(torch.float64)
torch.set_grad_enabled(False)
torch.use_deterministic_algorithms(True)
torch.nn.modules.module.register_module_forward_hook(lambda module, given, made: made * 0)


class Model(nn.Module):
    def forward(self, x):
        return torch.relu(x)


def get_inputs():
    return [torch.randn(8, 16)]


def get_init_inputs():
    return []
