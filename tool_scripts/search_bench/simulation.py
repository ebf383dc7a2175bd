"""Searches on a simulated clock: model calls side by side, evaluations in turn on the GPUs.

They are paired by seed: with the same seed every policy has the same problem and the same luck.
"""

import heapq
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean

from adaexplore.core.plan import Plan
from adaexplore.core.streams import stream
from adaexplore.core.verdict import Score
from adaexplore.search.policy import Policy
from tool_scripts.search_bench.environment import Environment, Outcome
from tool_scripts.search_bench.policies import policies
from tool_scripts.search_bench.traces import RecordedStep


@dataclass(frozen=True)
class Prices:
    """Simulated seconds and dollars."""

    call_s: float = 60.0  # median seconds of a model call, whose logarithm is normal with ``call_sigma``
    call_sigma: float = 0.5
    evaluation_s: float = 4.0  # GPU seconds of an evaluation
    gpus: int = 1  # parallel evaluations
    call_usd: float = 0.02  # dollars of a model call
    gpu_hour_usd: float = 3.0  # dollars of an hour of a GPU that evaluates


@dataclass(frozen=True)
class Reached:
    """State of a search after an observed step: simulated clock, dollars, true speedup of its best."""

    time_s: float
    usd: float
    speedup: float


@dataclass
class Simulation:
    """One policy in one environment; all randomness comes from ``seed`` and the step's number."""

    policy: Policy
    environment: Environment
    seed: int
    prices: Prices
    in_flight: int = 1

    def __post_init__(self) -> None:
        self._outcomes: dict[int, Outcome] = {}
        self._pending: list[Plan] = []
        self._gpus = [0.0] * self.prices.gpus
        self._usd = 0.0

    def run(self, steps: int) -> list[Reached]:
        """Search for ``steps`` steps; return an entry for each, in the order of observation."""
        events: list[tuple[float, int, bool, Plan]] = []
        reached: list[Reached] = []
        planned, now = 0, 0.0
        while len(reached) < steps:
            while planned < steps and len(self._pending) < self.in_flight:
                planned += 1
                heapq.heappush(events, self._launch(planned, now))
            now, _, judged, plan = heapq.heappop(events)
            if not judged:
                heapq.heappush(events, (self._evaluate(now), plan.step, True, plan))
            else:
                self._pending.remove(plan)
                found = self._outcomes[plan.step]
                score = Score(found.compiled, found.correct, found.speedup if found.correct else 0.0)
                self.policy.observe(plan, f"kernel {plan.step}", score)
                best = self._outcomes.get(self.policy.tree.best.id)
                reached.append(Reached(now, self._usd, 0.0 if best is None else best.true_speedup))
        return reached

    def recorded(self) -> tuple[RecordedStep, ...]:
        """Return the steps in the form of a recorded tree, in the order of observation."""
        plans = [node.plan for node in self.policy.tree if node.parent is not None]
        found = [self._outcomes[plan.step] for plan in plans]
        return tuple(
            RecordedStep(plan.step, plan.parent_id, plan.kind, plan.context_ids, end.correct, end.speedup)
            for plan, end in zip(plans, found, strict=True)
        )

    def _launch(self, step: int, now: float) -> tuple[float, int, bool, Plan]:
        plan = self.policy.plan(step, stream(self.seed, "policy", step), tuple(self._pending))
        self._pending.append(plan)
        outcome = self._answer(plan, stream(self.seed, "step", step))
        clock = stream(self.seed, "clock", step)
        call_s = outcome.calls * self.prices.call_s * math.exp(clock.gauss(0, self.prices.call_sigma))
        self._usd += outcome.calls * self.prices.call_usd
        return now + call_s, step, False, plan

    def _answer(self, plan: Plan, rng: Random) -> Outcome:
        if plan.kind.edits:
            outcome = self.environment.small(self._outcomes[plan.context_ids[-1]], rng)
        else:
            shown: Sequence[int] = (*plan.elite_ids, *plan.context_ids)
            context = [self._outcomes[node] for node in shown if self._outcomes[node].correct]
            outcome = self.environment.large(context, rng)
        self._outcomes[plan.step] = outcome
        return outcome

    def _evaluate(self, ready: float) -> float:
        """Queue for a GPU; return when the evaluation ends."""
        gpu = self._gpus.index(min(self._gpus))
        self._gpus[gpu] = max(ready, self._gpus[gpu]) + self.prices.evaluation_s
        self._usd += self.prices.evaluation_s / 3600 * self.prices.gpu_hour_usd
        return self._gpus[gpu]


@dataclass(frozen=True)
class Entry:
    """One policy, and its number of steps in flight."""

    policy: str
    in_flight: int = 1


@dataclass(frozen=True)
class Race:
    """All simulations of one entry, by seed; ``tops`` are the levels that count as the whole gain."""

    runs: tuple[tuple[Reached, ...], ...]
    tops: tuple[float, ...]

    def shares(self, step: int) -> list[float]:
        """Return the share of the log-gain that each seed reached after ``step`` steps (from 1)."""
        return [
            math.log(max(1.0, run[step - 1].speedup)) / top if top > 0 else 0.0
            for run, top in zip(self.runs, self.tops, strict=True)
        ]

    def mean_share(self, step: int) -> float:
        return fmean(self.shares(step))

    def mean_time_s(self, step: int) -> float:
        return fmean(run[step - 1].time_s for run in self.runs)

    def time_to(self, share: float) -> float | None:
        """Return the seconds after which the mean curve first reaches ``share``; None if it never does.

        Each number of steps is a point of that curve: the mean share after them, at their mean time.
        """
        steps = range(1, min(map(len, self.runs)) + 1)
        return next((self.mean_time_s(step) for step in steps if self.mean_share(step) >= share), None)


@dataclass(frozen=True)
class Call:
    """Seeds, steps, steps in flight to compare with one, processes, and prices."""

    seeds: Sequence[int]
    prices: Prices
    steps: int = 100
    in_flight: int = 4
    jobs: int = 1


def hold(environments: Sequence[Environment], entries: Sequence[Entry], call: Call) -> dict[Entry, Race]:
    """Run every entry on every seed; seed n uses environment n modulo their number."""
    work = [(entry, seed) for entry in entries for seed in call.seeds]
    run = partial(_run, environments, call)
    with ProcessPoolExecutor(call.jobs) as pool:
        results = list(pool.map(run, work, chunksize=max(1, len(work) // (8 * call.jobs))))
    tops = tuple(math.log(environments[seed % len(environments)].top) for seed in call.seeds)
    per = len(call.seeds)
    return {
        entry: Race(tuple(results[index * per : (index + 1) * per]), tops)
        for index, entry in enumerate(entries)
    }


def _run(environments: Sequence[Environment], call: Call, work: tuple[Entry, int]) -> tuple[Reached, ...]:
    entry, seed = work
    environment = environments[seed % len(environments)]
    policy = policies()[entry.policy]()
    return tuple(Simulation(policy, environment, seed, call.prices, entry.in_flight).run(call.steps))
