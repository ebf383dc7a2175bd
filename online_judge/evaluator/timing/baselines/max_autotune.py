"""``torch.compile`` with ``max-autotune``, which chooses kernels by time."""

import torch

from online_judge.evaluator.timing.baselines.baseline import Baseline

BASELINE = Baseline(
    "max-autotune",
    "torch.compile (max-autotune)",
    lambda model: torch.compile(model, mode="max-autotune"),
)
