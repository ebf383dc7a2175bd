"""The share of lineages with a hidden ceiling, from recorded trees.

It is the share with which the simulated paper L2 policy comes nearest to the recorded mean curve. Few trees
make a rough curve: of the shares that it hardly tells apart, the one is taken that reproduces best how much
seldomer stalled lineages advance than fresh ones, which is what ceilings are about.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from tool_scripts.search_bench.clock import Prices, Simulation
from tool_scripts.search_bench.contestants import L2, contestants
from tool_scripts.search_bench.moves import stall_hazard
from tool_scripts.search_bench.suites import Fit, recorded_problems, transferred_problems
from tool_scripts.search_bench.traces import RecordedStep, RecordedTree

SHARES = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
RUNS_PER_TREE = 25
LENGTH = 100
ALIKE = 1.1
"""Errors of mean curves up to this factor of the least are taken as equally good."""
FIRST_SEED = 10**6
"""Seeds of the calibration, far from those that are reported."""


@dataclass(frozen=True)
class Simulated:
    """What the paper L2 policy does in a fit: its mean curve, its rates of advance (fresh, stalled)."""

    curve: tuple[float, ...]
    hazard: tuple[float, float]


@dataclass(frozen=True)
class Calibration:
    """The chosen share and what comes of it; for each share tried, the error of its mean curve."""

    ceiling_share: float
    simulated: Simulated
    errors: dict[float, float]


def calibrate(trees: Sequence[RecordedTree]) -> Calibration:
    """Choose the share for ``trees``."""
    recorded, hazard = mean_curve(trees), stall_hazard(trees)
    tried = {share: simulate(Fit(tuple(trees), share), trees) for share in SHARES}
    errors = {share: curve_error(recorded, found.curve) for share, found in tried.items()}
    near = [share for share in SHARES if errors[share] <= ALIKE * min(errors.values())]
    chosen = min(near, key=lambda share: (_stall_error(hazard, tried[share].hazard), errors[share]))
    return Calibration(chosen, tried[chosen], errors)


def mean_curve(trees: Sequence[RecordedTree]) -> tuple[float, ...]:
    """Mean share of the log-gain of ``trees`` after each of the first steps."""
    return tuple(fmean(values) for values in zip(*(tree.curve(LENGTH) for tree in trees), strict=True))


def simulate(fit: Fit, others: Sequence[RecordedTree]) -> Simulated:
    """Run the paper L2 policy on the fitted trees, or transferred to ``others``, and read its trees."""
    own = tuple(others) == fit.trees
    problems = recorded_problems(fit) if own else transferred_problems(fit, others)
    makers = contestants()
    trees = []
    for number in range(RUNS_PER_TREE * len(problems)):
        tree = others[number % len(problems)]
        simulation = Simulation(makers[L2](), problems[number % len(problems)], FIRST_SEED + number, Prices())
        simulation.run(LENGTH)
        trees.append(_read(simulation, tree.name, tree.top))
    return Simulated(mean_curve(trees), stall_hazard(trees))


def curve_error(first: Sequence[float], second: Sequence[float]) -> float:
    """Root mean square difference."""
    return math.sqrt(fmean((a - b) ** 2 for a, b in zip(first, second, strict=True)))


def _stall_error(recorded: tuple[float, float], simulated: tuple[float, float]) -> float:
    """How far apart the two ratios of stalled to fresh lineages are; 0 where nothing is known."""
    if not recorded[0] > 0 or not simulated[0] > 0:
        return 0.0
    return abs(recorded[1] / recorded[0] - simulated[1] / simulated[0])


def _read(simulation: Simulation, name: str, top: float) -> RecordedTree:
    """A simulated search as a tree."""
    steps = []
    for plan, outcome in simulation.made():
        level = math.log(outcome.speedup) if outcome.correct else None
        steps.append(
            RecordedStep(plan.step, plan.parent_id, plan.kind, plan.context_ids, outcome.compiled, level, "")
        )
    return RecordedTree(name, tuple(steps), top=top)
