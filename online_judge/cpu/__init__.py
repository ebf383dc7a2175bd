"""Runs Triton candidates written for CUDA on a machine without a GPU.

Inside :func:`simulated_cuda` tensors report ``cuda:0``, every kernel launch is compiled by Triton's
real front end for the chosen target and then executed by Triton's interpreter on CPU memory.
"""

from __future__ import annotations

from online_judge.cpu.errors import IllegalAccessError, NotCheckedError
from online_judge.cpu.simulation import simulated_cuda

__all__ = ["IllegalAccessError", "NotCheckedError", "simulated_cuda"]
