"""The type of a baseline's kind, and all kinds."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache

import torch

from adaexplore.core.files.declarations import declared
from adaexplore.core.wire import BaselineKind


@dataclass(frozen=True)
class Baseline:
    kind: BaselineKind
    name: str  # for messages
    # returns what is called instead of the module; None if the module itself is timed
    prepare: Callable[[torch.nn.Module], Callable[..., object]] | None


@cache
def all_baselines() -> Mapping[str, Baseline]:
    """Return the ``BASELINE`` of every module of this package that has one, by kind."""
    found = declared("online_judge.evaluator.timing.baselines", "BASELINE")
    return {baseline.kind: baseline for baseline in found}
