"""One search on a simulated clock: model calls side by side, evaluations in turn on the GPUs."""

from __future__ import annotations

import heapq
import math
from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any

from adaexplore.core.plan import Plan, StepKind
from adaexplore.core.streams import stream
from adaexplore.search.policy import Policy
from tool_scripts.search_bench.environment import Environment, Outcome
from tool_scripts.search_bench.outcomes import outcome_of, score_of


@dataclass(frozen=True)
class Prices:
    """Simulated seconds and dollars.

    Attributes:
        call_s: median seconds of a model call, whose logarithm is normal with ``call_sigma``.
        call_sigma: its standard deviation.
        evaluation_s: seconds of the GPU for an evaluation.
        gpus: evaluations at a time.
        call_usd: dollars of a model call.
        gpu_hour_usd: dollars of an hour of a GPU that evaluates.
    """

    call_s: float = 60.0
    call_sigma: float = 0.5
    evaluation_s: float = 4.0
    gpus: int = 1
    call_usd: float = 0.02
    gpu_hour_usd: float = 3.0


@dataclass(frozen=True)
class Reached:
    """Where a search stands after an observed step: simulated clock, dollars, true speedup of its best."""

    time_s: float
    usd: float
    speedup: float


class Simulation:
    """One policy in one environment; all randomness comes from ``seed`` and the step's number."""

    def __init__(
        self, policy: Policy, environment: Environment, seed: int, prices: Prices, in_flight: int = 1
    ) -> None:
        self._policy = policy
        self._environment = environment
        self._seed = seed
        self._prices = prices
        self._slots = in_flight
        self._raw: dict[int, Any] = {}
        self._outcomes: dict[int, Outcome] = {}
        self._pending: list[Plan] = []
        self._gpus = [0.0] * prices.gpus
        self._usd = 0.0

    def run(self, steps: int) -> list[Reached]:
        """Search for ``steps`` steps; one entry for each, in the order in which they were observed."""
        self._raw[0] = self._environment.root(stream(self._seed, "root"))
        events: list[tuple[float, int, bool, Plan]] = []
        reached: list[Reached] = []
        planned, now = 0, 0.0
        while len(reached) < steps:
            while planned < steps and len(self._pending) < self._slots:
                planned += 1
                heapq.heappush(events, self._launch(planned, now))
            now, _, judged, plan = heapq.heappop(events)
            if not judged:
                heapq.heappush(events, (self._evaluate(now), plan.step, True, plan))
            else:
                self._pending.remove(plan)
                self._policy.observe(plan, f"kernel {plan.step}", score_of(self._outcomes[plan.step]))
                best = self._outcomes.get(self._policy.tree.best.id)
                reached.append(Reached(now, self._usd, 0.0 if best is None else best.truth))
        return reached

    def made(self) -> list[tuple[Plan, Outcome]]:
        """The observed steps, in the order in which they were observed."""
        return [(node.plan, self._outcomes[node.id]) for node in self._policy.tree if node.parent is not None]

    def _launch(self, step: int, now: float) -> tuple[float, int, bool, Plan]:
        """Plan a step and ask the model."""
        plan = self._policy.plan(step, stream(self._seed, "policy", step), tuple(self._pending))
        self._pending.append(plan)
        rng = stream(self._seed, "step", step)
        outcome = self._answer(plan, rng)
        clock = stream(self._seed, "clock", step)
        call_s = outcome.calls * self._prices.call_s * math.exp(clock.gauss(0, self._prices.call_sigma))
        self._usd += outcome.calls * self._prices.call_usd
        return now + call_s, step, False, plan

    def _answer(self, plan: Plan, rng: Random) -> Outcome:
        if plan.kind is StepKind.SMALL:
            raw = self._environment.small(self._raw[plan.context_ids[-1]], rng)
        else:
            shown: Sequence[int] = (*plan.elite_ids, *plan.context_ids)
            context = [self._raw[node] for node in shown if self._outcomes[node].correct]
            raw = self._environment.large(self._raw[plan.parent_id], context, rng)
        self._raw[plan.step] = raw
        self._outcomes[plan.step] = outcome_of(raw)
        return self._outcomes[plan.step]

    def _evaluate(self, ready: float) -> float:
        """Queue for a GPU; returns when the evaluation ends."""
        gpu = self._gpus.index(min(self._gpus))
        self._gpus[gpu] = max(ready, self._gpus[gpu]) + self._prices.evaluation_s
        self._usd += self._prices.evaluation_s / 3600 * self._prices.gpu_hour_usd
        return self._gpus[gpu]
