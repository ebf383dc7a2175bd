"""Environments of the benchmark, which answer a policy's steps instead of model and judge.

An environment keeps its memory of a candidate in ``Outcome.state``. It never sees the tree, and the policy
never sees ``true_speedup``.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Protocol


@dataclass(frozen=True)
class Outcome:
    compiled: bool
    correct: bool
    speedup: float = 0.0  # as measured, noise included; 0 unless correct
    true_speedup: float = 0.0  # without noise, hidden from the policy; 0 unless correct
    state: Any = None  # the environment's own memory of the candidate
    calls: float = 1.0  # model calls that the step took


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
