"""What a run may spend: dollars, tokens, seconds; steps in flight counted before they are paid."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from adaexplore.core.errors import BudgetReached, ConfigError
from adaexplore.core.usage import Usage


@dataclass(frozen=True)
class Limits:
    """The most that a run directory may cost; None where there is no limit.

    Attributes:
        usd: dollars at list prices, over all sessions of the run.
        tokens: tokens read and written, over all sessions of the run.
        wall_s: seconds that one session may take.
    """

    usd: float | None = None
    tokens: int | None = None
    wall_s: float | None = None


class Budget:
    """Admits steps as long as what is spent, what is in flight and one step more fit the limits.

    A step in flight is expected to cost and to take what finished ones did on average, so the last steps
    may exceed a limit by no more than they differ from that. Until one has finished ``expected`` is what
    a step may cost at most; the very first one goes all the same. Safe to share between threads.

    Args:
        limits: the most.
        meter: what this session has spent so far, in all.
        before: what earlier sessions of the run spent.
        steps: in how many steps they did.
        expected: the most that one step may cost, used until one has finished.
        clock: monotonic seconds.

    Raises:
        ConfigError: dollars are limited and nobody knows the model's price.
    """

    def __init__(
        self,
        limits: Limits,
        meter: Callable[[], Usage],
        *,
        before: Usage | None = None,
        steps: int = 0,
        expected: Usage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._limits = limits
        self._meter = meter
        self._before = before or Usage()
        self._steps = steps
        self._expected = expected or Usage()
        self._clock = clock
        self._begun = clock()
        self._lock = threading.Lock()
        self._in_flight = 0
        self._timed_steps = 0
        self._step_s = 0.0
        self._reached: str | None = None
        if limits.usd is not None and (self._before.usd is None or self._expected.usd is None):
            raise ConfigError(
                "max_cost_usd: no list price is known for this model; limit max_total_tokens instead"
            )

    @property
    def reached(self) -> str | None:
        """Which limit ended the run, in one line; None while none has."""
        return self._reached

    def admit(self) -> None:
        """Count one more step in flight.

        Raises:
            BudgetReached: it does not fit; from then on none does.
        """
        with self._lock:
            if self._reached is None:
                self._reached = self._exceeded()
            if self._reached is not None:
                raise BudgetReached(self._reached)
            self._in_flight += 1

    def settle(self, seconds: float) -> None:
        """An admitted step has ended after so many seconds."""
        with self._lock:
            self._in_flight -= 1
            self._steps += 1
            self._timed_steps += 1
            self._step_s += seconds

    def drop(self) -> None:
        """An admitted step came to nothing."""
        with self._lock:
            self._in_flight -= 1

    def _exceeded(self) -> str | None:
        limits, spent = self._limits, self._before + self._meter()
        mean = 1 / self._steps if self._steps else None
        ahead = self._in_flight + (1 if mean or self._in_flight else 0)
        if limits.usd is not None:
            known = spent.usd
            if known is None:
                return "max_cost_usd: a reply came without a known price; limit max_total_tokens instead"
            step = self._expected.usd if mean is None else known * mean
            if known + ahead * (step or 0.0) > limits.usd or known >= limits.usd:
                return f"max_cost_usd: ${limits.usd:g} would be exceeded, ${known:.4f} are spent"
        if limits.tokens is not None:
            used = spent.input_tokens + spent.output_tokens
            expected = self._expected.input_tokens + self._expected.output_tokens
            each = expected if mean is None else used * mean
            if used + ahead * each > limits.tokens or used >= limits.tokens:
                return f"max_total_tokens: {limits.tokens} would be exceeded, {used} are spent"
        if limits.wall_s is not None:
            taken = self._clock() - self._begun
            each = self._step_s / self._timed_steps if self._timed_steps else 0.0
            if taken + each > limits.wall_s:
                return f"max_wall_s: {limits.wall_s:g} s would be exceeded, {taken:.0f} s have passed"
        return None
