"""What a policy is benchmarked in: a stand-in for the model and the judge.

An environment answers steps with outcomes, and carries in ``state`` whatever it must remember about a
candidate. It never sees the tree, and the policy never sees ``true_speedup``. A file for ``--env`` is a
Python file with these three functions (or a class ``Environment`` that has them)::

    def root(rng): ...                      # where a search starts: the problem, drawn or fixed
    def small(parent, rng): ...             # an edit of the candidate ``parent``
    def large(parent, context, rng): ...    # a new kernel, written in sight of the candidates ``context``

``rng`` is a ``random.Random``. They return an :class:`Outcome`, or any object, mapping or (compiled,
correct, speedup) triple that has its fields; a file may also name ``top``, the greatest true speedup.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol


@dataclass(frozen=True)
class Outcome:
    """What came of one step.

    Attributes:
        compiled: the module imported.
        correct: every check passed.
        speedup: as measured, noise included; 0 unless correct.
        true_speedup: without noise, hidden from the policy; None takes ``speedup``.
        low: lower end of the measurement's interval, where there is one; no policy sees it.
        high: its upper end.
        state: the environment's own memory of the candidate.
        calls: model calls that the step took.
    """

    compiled: bool
    correct: bool
    speedup: float = 0.0
    true_speedup: float | None = None
    low: float | None = None
    high: float | None = None
    state: Any = None
    calls: float = 1.0

    @property
    def truth(self) -> float:
        """The true speedup, 0 unless correct."""
        if not self.correct:
            return 0.0
        return self.speedup if self.true_speedup is None else self.true_speedup


class Environment(Protocol):
    """The three functions, and what the figures need to know."""

    @property
    def name(self) -> str:
        """For reports."""

    @property
    def top(self) -> float | None:
        """The greatest true speedup; None where it is not known."""

    def root(self, rng: random.Random) -> Any:
        """Where a search starts; handed to ``large`` as the parent of the first steps."""

    def small(self, parent: Any, rng: random.Random) -> Any:
        """Edit ``parent``, which is what an earlier step returned."""

    def large(self, parent: Any, context: Sequence[Any], rng: random.Random) -> Any:
        """Write a new kernel from ``parent`` in sight of ``context`` (correct candidates, maybe none)."""
