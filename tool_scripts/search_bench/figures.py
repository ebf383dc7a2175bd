"""The figures of a call: curves, paired comparisons, and the gain of steps in flight."""

import random
from collections.abc import Sequence
from statistics import fmean, geometric_mean
from typing import Any

from tool_scripts.search_bench.environment import Environment
from tool_scripts.search_bench.policies import DEFAULT, L2, L3, policies
from tool_scripts.search_bench.simulation import Call, Entry, Race, hold

STEPS = (10, 25, 50, 100)
AT = 50
RESAMPLES = 2000


def compare(environments: Sequence[Environment], call: Call) -> dict[str, Any]:
    """Return the figures of all policies, the default against the paper's, and those of steps in flight."""
    names = list(policies())
    several = Entry(DEFAULT, call.in_flight)
    entries = [*map(Entry, names), *([several] if call.in_flight > 1 else [])]
    races = hold(environments, entries, call)
    groups = [seed % len(environments) for seed in call.seeds]
    ours = races[Entry(DEFAULT)]
    last = min(call.steps, AT)
    result: dict[str, Any] = {
        "environments": [environment.name for environment in environments],
        "seeds": len(call.seeds),
        "policies": {name: summary(races[Entry(name)], call.steps) for name in names},
        "default_vs_paper_l2": gain(ours, races[Entry(L2)], groups, last),
        "default_vs_paper_l3": gain(ours, races[Entry(L3)], groups, last),
    }
    if call.in_flight > 1:
        result["parallel"] = in_flight_figures(ours, races[several], call.in_flight, groups, last)
    return result


def summary(race: Race, steps: int) -> dict[str, float | None]:
    """Return ``x@k`` (geometric mean speedup), ``share@k`` (of log-gain), ``auc50``, clock and dollars.

    A true speedup below 1x counts as 1x.
    """
    names = [f"{figure}@{step}" for figure in ("x", "share") for step in STEPS]
    figures: dict[str, float | None] = dict.fromkeys(names)
    for step in (step for step in STEPS if step <= steps):
        reached = [max(1.0, run[step - 1].speedup) for run in race.runs]
        figures[f"x@{step}"] = round(geometric_mean(reached), 4)
        figures[f"share@{step}"] = round(race.mean_share(step), 4)
    last = min(AT, steps)
    figures["auc50"] = round(fmean(race.mean_share(step) for step in range(1, last + 1)), 4)
    figures["hours@50"] = round(race.mean_time_s(last) / 3600, 4)
    figures["usd@50"] = round(fmean(run[last - 1].usd for run in race.runs), 4)
    return figures


def gain(ours: Race, theirs: Race, groups: Sequence[int], step: int = AT) -> dict[str, float | None]:
    """Return the relative gain of the mean shares after ``step`` steps, with its paired 95 % interval.

    Seeds are resampled within each of ``groups`` (the environment of each seed), seeds of groups with a
    single one among each other; both policies use the same seeds. None if the other policy gained nothing.
    """
    mine, other = ours.shares(step), theirs.shares(step)
    if not sum(other) > 0:
        return {"gain": None, "low": None, "high": None}
    members: dict[int, list[int]] = {}
    for index, group in enumerate(groups):
        members.setdefault(group, []).append(index)
    alone = [group[0] for group in members.values() if len(group) == 1]
    drawn_from = [group for group in members.values() if len(group) > 1] + ([alone] if alone else [])
    rng = random.Random(0)
    found = []
    for _ in range(RESAMPLES):
        drawn = [index for group in drawn_from for index in rng.choices(group, k=len(group))]
        total = sum(other[index] for index in drawn)
        if total > 0:
            found.append(sum(mine[index] for index in drawn) / total - 1)
    found.sort()
    low, high = found[int(0.025 * len(found))], found[min(int(0.975 * len(found)), len(found) - 1)]
    return {"gain": round(sum(mine) / sum(other) - 1, 4), "low": round(low, 4), "high": round(high, 4)}


def in_flight_figures(
    alone: Race, several: Race, count: int, groups: Sequence[int], step: int = AT
) -> dict[str, Any]:
    """Measure gain and cost of ``count`` steps in flight.

    ``times_faster`` compares the simulated times at which both mean curves first reach the share of ``alone``
    after ``step`` steps; None if ``several`` never reaches it. ``loss_per_sample`` is the missing part of
    that share after as many steps, with its paired 95 % interval (:func:`gain`).
    """
    target = alone.mean_share(step)
    alone_s, several_s = alone.time_to(target), several.time_to(target)
    found = gain(several, alone, groups, step)
    loss, low, high = (
        None if value is None else round(0.0 - value, 4)
        for value in (found["gain"], found["high"], found["low"])
    )
    return {
        "in_flight": count,
        "times_faster": round(alone_s / several_s, 3) if target > 0 and alone_s and several_s else None,
        "loss_per_sample": loss,
        "loss_low": low,
        "loss_high": high,
    }
