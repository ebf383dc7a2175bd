"""The budget of a run: dollars, tokens, seconds; steps in flight count before they are paid."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from adaexplore.core.errors import AdaExploreError, BudgetReached, ConfigError, Interrupted
from adaexplore.core.usage import Usage
from adaexplore.llm.meter import MeteredClient
from adaexplore.llm.protocol import ModelClient, ModelReply, ModelRequest
from adaexplore.settings.config import RunConfig

_LOOK_S = 0.5


class Budget:
    """Admits a step if the cost so far, the steps in flight and the new step fit the limits.

    The expected cost and time of a step in flight are the mean of finished steps; so the last steps can
    exceed a limit only by their difference from the mean. If more steps are in flight than have finished,
    the rest count with their maximum cost; the very first step is always admitted. A step that does not
    fit beside steps in flight may fit after they end. Thread-safe.

    Args:
        config: its limits are ``max_cost_usd``, ``max_total_tokens`` and ``max_wall_s``.
        client: counts the cost of this session.
        before: the cost of earlier sessions of the run.
        steps: the number of their steps.
        expected: the maximum cost of one step.
        clock: monotonic seconds.

    Raises:
        ConfigError: dollars are limited and the model's price is unknown.
    """

    def __init__(
        self,
        config: RunConfig,
        client: MeteredClient,
        *,
        before: Usage | None = None,
        steps: int = 0,
        expected: Usage | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._config = config
        self._client = client
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
        if config.max_cost_usd is not None and (self._before.usd is None or self._expected.usd is None):
            raise ConfigError(
                "max_cost_usd: no list price is known for this model; limit max_total_tokens instead"
            )

    @property
    def reached(self) -> str | None:
        """The limit that ended the run, in one line; None before that."""
        return self._reached

    def admit(self) -> None:
        """Admit one more step.

        Raises:
            BudgetReached: it does not fit; if nothing is in flight, no later step fits either.
        """
        with self._changed:
            reached = self._reached or self._exceeded()
            if reached is not None:
                self._reached = self._reached if self._in_flight else reached
                raise BudgetReached(reached)
            self._in_flight += 1

    def wait(self) -> None:
        """Wait until a step in flight ends, at most half a second."""
        with self._changed:
            if self._in_flight:
                self._changed.wait(_LOOK_S)

    def settle(self, seconds: float) -> None:
        """Count an admitted step as finished after so many seconds."""
        with self._changed:
            self._changed.notify_all()
            self._in_flight -= 1
            self._steps += 1
            self._timed_steps += 1
            self._step_s += seconds

    def drop(self) -> None:
        """Remove an admitted step that has no result."""
        with self._changed:
            self._changed.notify_all()
            self._in_flight -= 1

    def _exceeded(self) -> str | None:
        config, spent = self._config, self._before + self._client.usage
        if (most := config.max_cost_usd) is not None:
            known = spent.usd
            if known is None:
                return "max_cost_usd: a reply came without a known price; limit max_total_tokens instead"
            if known + self._ahead(known, self._expected.usd or 0.0) > most or known >= most:
                return f"max_cost_usd: ${most:g} would be exceeded, ${known:.4f} are spent"
        if (tokens := config.max_total_tokens) is not None:
            used = spent.input_tokens + spent.output_tokens
            expected = self._expected.input_tokens + self._expected.output_tokens
            if used + self._ahead(used, expected) > tokens or used >= tokens:
                return f"max_total_tokens: {tokens} would be exceeded, {used} are spent"
        if (wall_s := config.max_wall_s) is not None:
            taken = self._clock() - self._begun
            each = self._step_s / self._timed_steps if self._timed_steps else 0.0
            if taken + each > wall_s:
                return f"max_wall_s: {wall_s:g} s would be exceeded, {taken:.0f} s have passed"
        return None

    def _ahead(self, spent: float, most: float) -> float:
        """Return the expected cost of the steps in flight and one more, if ``spent`` is the cost so far."""
        steps = self._in_flight + (1 if self._steps or self._in_flight else 0)
        mean = spent / self._steps if self._steps else 0.0
        known = min(steps, self._steps)
        return known * mean + (steps - known) * max(mean, most)


class BudgetedClient:
    """A client whose every request is a step of ``budget``; thread-safe.

    Once ``stop`` is set, waiting for requests in flight ends.
    """

    def __init__(self, client: ModelClient, budget: Budget, stop: threading.Event) -> None:
        self._client = client
        self._budget = budget
        self._stop = stop

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request if the budget admits it.

        Raises:
            BudgetReached: no further request fits.
            Interrupted: ``stop`` was set while waiting.
            ModelError: from the wrapped client.
        """
        while not self._admitted():
            if self._stop.is_set():
                raise Interrupted("stopped while waiting for the cost of other requests")
            self._budget.wait()
        begun = time.monotonic()
        try:
            reply = self._client.complete(request)
        except AdaExploreError:
            self._budget.drop()
            raise
        self._budget.settle(time.monotonic() - begun)
        return reply

    def _admitted(self) -> bool:
        """Admit the request; return False if the cost of those in flight decides."""
        try:
            self._budget.admit()
        except BudgetReached as reached:
            if self._budget.reached is None:
                return False
            raise BudgetReached(f"{reached}; what is finished is kept, the same command continues") from None
        return True
