"""Many simulations, paired by seed: the same seed is the same problem and the same luck for every policy."""

from __future__ import annotations

import math
import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from statistics import fmean

from adaexplore.search.policy import Policy
from tool_scripts.search_bench.clock import Prices, Reached, Simulation
from tool_scripts.search_bench.environment import Environment

Maker = Callable[[], Policy]


@dataclass(frozen=True)
class Entry:
    """One contestant: a policy, with how many steps in flight."""

    policy: str
    in_flight: int = 1


@dataclass(frozen=True)
class Race:
    """All simulations of one entry, by seed; ``tops`` are the levels that count as the whole gain."""

    runs: tuple[tuple[Reached, ...], ...]
    tops: tuple[float, ...]

    def shares(self, step: int) -> list[float]:
        """Share of the log-gain that each seed reached after ``step`` steps (from 1)."""
        return [_share(run[step - 1], top) for run, top in zip(self.runs, self.tops, strict=True)]

    def mean_share(self, step: int) -> float:
        """Their mean."""
        return fmean(self.shares(step))

    def mean_speedup(self, step: int) -> float:
        """Geometric mean of the best true speedup after ``step`` steps; below 1x counts as 1x."""
        return math.exp(fmean(math.log(max(1.0, run[step - 1].speedup)) for run in self.runs))

    def mean_time_s(self, step: int) -> float:
        """Mean simulated seconds until ``step`` steps are done."""
        return fmean(run[step - 1].time_s for run in self.runs)

    def time_to(self, share: float) -> float | None:
        """Simulated seconds after which the mean curve first reaches ``share``; None where it never does.

        A point of that curve is a number of steps: the mean share after them, at the mean time they took.
        """
        steps = range(1, min(map(len, self.runs)) + 1)
        return next((self.mean_time_s(step) for step in steps if self.mean_share(step) >= share), None)


@dataclass(frozen=True)
class Setting:
    """What all simulations of a call have in common."""

    makers: Mapping[str, Maker]
    environments: Sequence[Environment]
    prices: Prices
    steps: int


def hold(
    setting: Setting, entries: Sequence[Entry], seeds: Sequence[int], jobs: int = 1
) -> dict[Entry, Race]:
    """Run every entry on every seed; seed n runs in the environment n modulo their number."""
    work = [(entry, seed) for entry in entries for seed in seeds]
    if jobs == 1:
        results = [_run(setting, entry, seed) for entry, seed in work]
    else:
        context = multiprocessing.get_context("fork")  # environments from a file cannot be sent
        _SHARED.append(setting)
        with ProcessPoolExecutor(jobs, mp_context=context) as pool:
            results = list(pool.map(_run_shared, work, chunksize=max(1, len(work) // (8 * jobs))))
        _SHARED.pop()
    tops = _tops(setting, seeds, results)
    per = len(seeds)
    return {
        entry: Race(tuple(results[index * per : (index + 1) * per]), tops)
        for index, entry in enumerate(entries)
    }


_SHARED: list[Setting] = []


def _run_shared(work: tuple[Entry, int]) -> tuple[Reached, ...]:
    return _run(_SHARED[-1], *work)


def _run(setting: Setting, entry: Entry, seed: int) -> tuple[Reached, ...]:
    environment = setting.environments[seed % len(setting.environments)]
    policy = setting.makers[entry.policy]()
    return tuple(Simulation(policy, environment, seed, setting.prices, entry.in_flight).run(setting.steps))


def _tops(
    setting: Setting, seeds: Sequence[int], results: Sequence[tuple[Reached, ...]]
) -> tuple[float, ...]:
    """The level of the whole gain for each seed: the environment's, or the greatest that any run reached."""
    count = len(setting.environments)
    reached = [0.0] * count
    for index, run in enumerate(results):
        place = seeds[index % len(seeds)] % count
        reached[place] = max(reached[place], *(math.log(max(1.0, point.speedup)) for point in run))
    levels = [
        reached[place] if (top := environment.top) is None else math.log(top)
        for place, environment in enumerate(setting.environments)
    ]
    return tuple(levels[seed % count] for seed in seeds)


def _share(point: Reached, top: float) -> float:
    return math.log(max(1.0, point.speedup)) / top if top > 0 else 0.0
