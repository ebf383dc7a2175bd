"""Environments of the benchmark, which answer a policy's steps instead of model and judge.

An environment keeps its memory of a candidate in ``Outcome.state``. It never sees the tree, and the policy
never sees ``true_speedup``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol


@dataclass(frozen=True)
class Outcome:
    """The result of one step.

    Attributes:
        speedup: as measured, noise included; 0 unless correct.
        true_speedup: without noise, hidden from the policy; 0 unless correct.
        state: the environment's own memory of the candidate.
        calls: model calls that the step took.
    """

    compiled: bool
    correct: bool
    speedup: float = 0.0
    true_speedup: float = 0.0
    state: Any = None
    calls: float = 1.0


class Environment(Protocol):
    """One problem; ``top`` is the greatest true speedup."""

    @property
    def name(self) -> str: ...

    @property
    def top(self) -> float: ...

    def small(self, parent: Outcome, rng: Random) -> Outcome:
        """Return an edit of the candidate ``parent``."""

    def large(self, context: Sequence[Outcome], rng: Random) -> Outcome:
        """Return a new kernel, written with the correct candidates ``context`` in view."""
