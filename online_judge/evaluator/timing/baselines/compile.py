"""``torch.compile`` in its default mode."""

import torch

from online_judge.evaluator.timing.baselines.baseline import Baseline

BASELINE = Baseline("compile", "torch.compile (default)", lambda model: torch.compile(model))
