"""What one call of the benchmark does."""

from __future__ import annotations

import logging
import random
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from adaexplore.core.errors import ConfigError
from tool_scripts.search_bench.calibration import calibrate, curve_error, mean_curve, simulate
from tool_scripts.search_bench.clock import Prices
from tool_scripts.search_bench.contestants import DEFAULT, L2, L3, contestants
from tool_scripts.search_bench.environment import Environment
from tool_scripts.search_bench.figures import gain, in_flight_figures, summary
from tool_scripts.search_bench.moves import repair_rate, stall_hazard, timing_noise
from tool_scripts.search_bench.races import Entry, Setting, hold
from tool_scripts.search_bench.suites import Fit, recorded_problems, transferred_problems, usable
from tool_scripts.search_bench.traces import RecordedTree, read_trees

logger = logging.getLogger("bench_search")


@dataclass(frozen=True)
class Call:
    """Seeds, steps, steps in flight to compare with one, processes, and prices."""

    seeds: Sequence[int]
    prices: Prices
    steps: int = 100
    in_flight: int = 4
    jobs: int = 1


def compare(environments: Sequence[Environment], call: Call) -> dict[str, Any]:
    """All policies in ``environments``: their figures, default against the paper's, steps in flight.

    Raises:
        ConfigError: there is no environment.
    """
    if not environments:
        raise ConfigError("there is no environment to compare policies in")
    setting = Setting(contestants(), environments, call.prices, call.steps)
    several = Entry(DEFAULT, call.in_flight)
    entries = [*(Entry(name) for name in setting.makers), *([several] if call.in_flight > 1 else [])]
    races = hold(setting, entries, call.seeds, call.jobs)
    groups = [seed % len(environments) for seed in call.seeds]
    ours = races[Entry(DEFAULT)]
    last = min(call.steps, 50)
    result: dict[str, Any] = {
        "environments": [environment.name for environment in environments],
        "seeds": len(call.seeds),
        "policies": {name: summary(races[Entry(name)], call.steps) for name in setting.makers},
        "default_vs_paper_l2": gain(ours, races[Entry(L2)], groups, last),
        "default_vs_paper_l3": gain(ours, races[Entry(L3)], groups, last),
    }
    if call.in_flight > 1:
        result["parallel"] = in_flight_figures(ours, races[several], call.in_flight, groups, last)
    return result


def tier_a(folder: Path, leave_out: Sequence[str], call: Call) -> dict[str, Any]:
    """Fit to the trees of ``folder`` and compare; says how well the fit does.

    Raises:
        ConfigError: the folder cannot be used.
    """
    trees = usable(read_trees(folder), leave_out, logger.info)
    found = calibrate(trees)
    fit = Fit(tuple(trees), found.ceiling_share)
    logger.info("fitted to %d trees, share of lineages with a ceiling %.2f", len(trees), found.ceiling_share)
    fresh, stalled = stall_hazard(trees)
    about = {
        "trees": [tree.name for tree in trees],
        "ceiling_share": found.ceiling_share,
        "curve_error": {f"{share:.2f}": round(error, 4) for share, error in found.errors.items()},
        "recorded_curve": _marks(mean_curve(trees)),
        "simulated_curve": _marks(found.simulated.curve),
        "timing_noise": round(timing_noise(trees), 4),
        "repair_rate": round(repair_rate(trees), 4),
        "recorded_advance": {"fresh": round(fresh, 4), "stalled": round(stalled, 4)},
        "simulated_advance": dict(
            zip(("fresh", "stalled"), map(_rounded, found.simulated.hazard), strict=True)
        ),
    }
    return {**compare(recorded_problems(fit), call), "fit": about}


def hold_out(folder: Path, leave_out: Sequence[str], splits: int, call: Call) -> dict[str, Any]:
    """Fit to one half of the trees, compare on the other, both ways, for ``splits`` random halves.

    Raises:
        ConfigError: the folder cannot be used, or holds a single tree.
    """
    trees = usable(read_trees(folder), leave_out, logger.info)
    if len(trees) < 2:
        raise ConfigError("--splits needs two recorded trees or more")
    results = []
    for number in range(splits):
        shuffled = random.Random(number).sample(trees, len(trees))
        half = len(shuffled) // 2
        for fitted, others in ((shuffled[:half], shuffled[half:]), (shuffled[half:], shuffled[:half])):
            results.append(_held_out(fitted, others, call))
            logger.info(
                "fitted to %s, run on %s: %s",
                " ".join(results[-1]["fitted"]),
                " ".join(results[-1]["run_on"]),
                results[-1]["default_vs_paper_l2"],
            )
    worst: dict[str, Any] = {}
    for name in ("default_vs_paper_l2", "default_vs_paper_l3"):
        gains = [result[name]["gain"] for result in results if result[name]["gain"] is not None]
        worst[name] = {"least": min(gains), "mean": round(fmean(gains), 4)} if gains else None
    return {"splits": results, "over_splits": worst}


def _held_out(fitted: Sequence[RecordedTree], others: Sequence[RecordedTree], call: Call) -> dict[str, Any]:
    found = calibrate(fitted)
    fit = Fit(tuple(fitted), found.ceiling_share)
    alone = replace(call, in_flight=1)
    own = compare(recorded_problems(fit, others), alone)
    transferred = compare(transferred_problems(fit, others), alone)
    return {
        "fitted": [tree.name for tree in fitted],
        "run_on": [tree.name for tree in others],
        "ceiling_share": found.ceiling_share,
        **_brief(own),
        "transferred": {
            "curve_error": round(curve_error(mean_curve(others), simulate(fit, others).curve), 4),
            **_brief(transferred),
        },
    }


def _brief(result: dict[str, Any]) -> dict[str, Any]:
    return {
        "share@50": {name: figures["share@50"] for name, figures in result["policies"].items()},
        "default_vs_paper_l2": result["default_vs_paper_l2"],
        "default_vs_paper_l3": result["default_vs_paper_l3"],
    }


def _marks(curve: Sequence[float]) -> dict[str, float]:
    return {str(step): round(curve[step - 1], 4) for step in (1, 5, 10, 25, 50, 75, 100)}


def _rounded(value: float) -> float:
    return round(value, 4)
