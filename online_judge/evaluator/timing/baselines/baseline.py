"""The type of a baseline's kind, and all kinds."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import torch

from adaexplore.core.wire import BaselineKind
from online_judge.evaluator.timing import baselines


@dataclass(frozen=True)
class Baseline:
    kind: BaselineKind
    name: str  # for messages
    # returns what is called instead of the module; None if the module itself is timed
    prepare: Callable[[torch.nn.Module], Callable[..., object]] | None


@cache
def all_baselines() -> Mapping[str, Baseline]:
    """Return the ``BASELINE`` of every module of this package that has one, by kind."""
    names = sorted(found.name for found in pkgutil.iter_modules(baselines.__path__, f"{baselines.__name__}."))
    modules = map(importlib.import_module, names)
    found = [module.BASELINE for module in modules if hasattr(module, "BASELINE")]
    return {baseline.kind: baseline for baseline in found}
