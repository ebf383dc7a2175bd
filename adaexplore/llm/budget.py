"""What a run may spend: dollars, tokens, seconds; steps in flight counted before they are paid."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from adaexplore.core.errors import BudgetReached, ConfigError
from adaexplore.core.usage import Usage

_LOOK_S = 0.5


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
    may exceed a limit by no more than they differ from that. Of more in flight than have finished, the rest
    are expected to cost the most that they may; the very first one goes all the same. What does not fit
    beside steps in flight may fit when these have ended. Safe to share between threads.

    Args:
        limits: the most.
        meter: what this session has spent so far, in all.
        before: what earlier sessions of the run spent.
        steps: in how many steps they did.
        expected: the most that one step may cost.
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
        self._changed = threading.Condition()
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
            BudgetReached: it does not fit; where nothing is in flight, none does from then on.
        """
        with self._changed:
            reached = self._reached or self._exceeded()
            if reached is not None:
                self._reached = self._reached if self._in_flight else reached
                raise BudgetReached(reached)
            self._in_flight += 1

    def wait(self) -> None:
        """Wait until a step in flight has ended, half a second at most."""
        with self._changed:
            if self._in_flight:
                self._changed.wait(_LOOK_S)

    def settle(self, seconds: float) -> None:
        """An admitted step has ended after so many seconds."""
        with self._changed:
            self._changed.notify_all()
            self._in_flight -= 1
            self._steps += 1
            self._timed_steps += 1
            self._step_s += seconds

    def drop(self) -> None:
        """An admitted step came to nothing."""
        with self._changed:
            self._changed.notify_all()
            self._in_flight -= 1

    def _exceeded(self) -> str | None:
        limits, spent = self._limits, self._before + self._meter()
        if limits.usd is not None:
            known = spent.usd
            if known is None:
                return "max_cost_usd: a reply came without a known price; limit max_total_tokens instead"
            if known + self._ahead(known, self._expected.usd or 0.0) > limits.usd or known >= limits.usd:
                return f"max_cost_usd: ${limits.usd:g} would be exceeded, ${known:.4f} are spent"
        if limits.tokens is not None:
            used = spent.input_tokens + spent.output_tokens
            expected = self._expected.input_tokens + self._expected.output_tokens
            if used + self._ahead(used, expected) > limits.tokens or used >= limits.tokens:
                return f"max_total_tokens: {limits.tokens} would be exceeded, {used} are spent"
        if limits.wall_s is not None:
            taken = self._clock() - self._begun
            each = self._step_s / self._timed_steps if self._timed_steps else 0.0
            if taken + each > limits.wall_s:
                return f"max_wall_s: {limits.wall_s:g} s would be exceeded, {taken:.0f} s have passed"
        return None

    def _ahead(self, spent: float, most: float) -> float:
        """What the steps in flight and one more are expected to cost, where ``spent`` are spent so far."""
        steps = self._in_flight + (1 if self._steps or self._in_flight else 0)
        mean = spent / self._steps if self._steps else 0.0
        known = min(steps, self._steps)
        return known * mean + (steps - known) * max(mean, most)
