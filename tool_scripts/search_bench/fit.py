"""Tier A: fit to recorded trees, and compare policies on them.

The fitted parameter is the share of lineages with a hidden ceiling: with it the simulated paper L2 policy is
nearest to the recorded mean curve. Few trees make a rough curve; of shares with nearly equal errors, the fit
takes the one that best reproduces how much less often stalled lineages advance than fresh ones.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tool_scripts.search_bench import moves, traces
from tool_scripts.search_bench.figures import compare
from tool_scripts.search_bench.policies import L2, policies
from tool_scripts.search_bench.recorded import RecordedProblem
from tool_scripts.search_bench.simulation import Call, Prices, Simulation
from tool_scripts.search_bench.traces import RecordedTree, logger, mean_curve

SHARES = (0.0, 0.15, 0.3, 0.45, 0.6, 0.75, 0.9)
RUNS_PER_TREE = 25
LENGTH = 100
ALIKE = 1.1
"""Errors of mean curves up to this factor times the smallest count as equal."""
FIRST_SEED = 10**6
"""Seeds of the fit, far from the reported ones."""


@dataclass(frozen=True)
class Simulated:
    """The paper L2 policy in a fit: its mean curve, its rates of advance (fresh, stalled)."""

    curve: tuple[float, ...]
    hazard: tuple[float, float]


@dataclass(frozen=True)
class Fit:
    """Fitted trees, and the share of lineages with a ceiling."""

    trees: tuple[RecordedTree, ...]
    ceiling_share: float

    def problems(self) -> list[RecordedProblem]:
        """Return an environment for each tree, with its own steps; ceilings, noise and repairs are shared."""
        noise, repairs = moves.timing_noise(self.trees), moves.repair_rate(self.trees)
        return [
            RecordedProblem(
                tree.name, tree.top, moves.recorded_moves(tree), self.ceiling_share, noise, repairs
            )
            for tree in self.trees
        ]

    def simulate(self) -> Simulated:
        """Run the paper L2 policy on the trees, and read the trees that it makes."""
        pairs = list(zip(self.trees, self.problems(), strict=True))
        trees = []
        for number, (tree, problem) in enumerate(pairs * RUNS_PER_TREE):
            simulation = Simulation(policies()[L2](), problem, FIRST_SEED + number, Prices())
            simulation.run(LENGTH)
            trees.append(RecordedTree(tree.name, simulation.recorded(), tree.top))
        return Simulated(mean_curve(trees, LENGTH), moves.stall_hazard(trees))


def fitted(trees: Sequence[RecordedTree]) -> tuple[Fit, Simulated, dict[float, float]]:
    """Return the fit to ``trees``, its simulation, and the mean curve's error for each share tried."""
    recorded, hazard = mean_curve(trees, LENGTH), moves.stall_hazard(trees)
    tried = {share: Fit(tuple(trees), share).simulate() for share in SHARES}
    errors = {share: math.dist(recorded, found.curve) / math.sqrt(LENGTH) for share, found in tried.items()}
    near = [share for share in SHARES if errors[share] <= ALIKE * min(errors.values())]
    chosen = min(near, key=lambda share: (_stall_error(hazard, tried[share].hazard), errors[share]))
    return Fit(tuple(trees), chosen), tried[chosen], errors


def tier_a(folder: Path, leave_out: Sequence[str], call: Call) -> dict[str, Any]:
    """Fit to the trees of ``folder`` and compare policies; report the quality of the fit.

    Raises:
        ConfigError: the folder cannot be used.
    """
    trees = traces.usable(traces.read_trees(folder), leave_out)
    fit, simulated, errors = fitted(trees)
    logger.info("fitted to %d trees, share of lineages with a ceiling %.2f", len(trees), fit.ceiling_share)
    about = {
        "trees": [tree.name for tree in trees],
        "ceiling_share": fit.ceiling_share,
        "curve_error": {f"{share:.2f}": round(error, 4) for share, error in errors.items()},
        "recorded_curve": _marks(mean_curve(trees, LENGTH)),
        "simulated_curve": _marks(simulated.curve),
        "timing_noise": round(moves.timing_noise(trees), 4),
        "repair_rate": round(moves.repair_rate(trees), 4),
        "recorded_advance": _advance(moves.stall_hazard(trees)),
        "simulated_advance": _advance(simulated.hazard),
    }
    return {**compare(fit.problems(), call), "fit": about}


def _stall_error(recorded: tuple[float, float], simulated: tuple[float, float]) -> float:
    """Return the difference of the ratios of stalled to fresh lineages; 0 if one is unknown."""
    if not recorded[0] > 0 or not simulated[0] > 0:
        return 0.0
    return abs(recorded[1] / recorded[0] - simulated[1] / simulated[0])


def _marks(curve: Sequence[float]) -> dict[str, float]:
    return {str(step): round(curve[step - 1], 4) for step in (1, 5, 10, 25, 50, 75, 100)}


def _advance(hazard: tuple[float, float]) -> dict[str, float]:
    return {"fresh": round(hazard[0], 4), "stalled": round(hazard[1], 4)}
