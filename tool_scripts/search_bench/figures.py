"""The numbers of a call: curves, paired comparisons, and what steps in flight bring."""

from __future__ import annotations

import random
from collections.abc import Sequence
from statistics import fmean
from typing import Any

from tool_scripts.search_bench.races import Race

STEPS = (10, 25, 50, 100)
AT = 50
RESAMPLES = 2000


def summary(race: Race, steps: int) -> dict[str, float | None]:
    """``x@k`` (geometric mean speedup), ``share@k`` (mean share of log-gain), ``auc50``, clock, dollars."""
    figures: dict[str, float | None] = {}
    for step in STEPS:
        figures[f"x@{step}"] = round(race.mean_speedup(step), 4) if step <= steps else None
    for step in STEPS:
        figures[f"share@{step}"] = round(race.mean_share(step), 4) if step <= steps else None
    last = min(AT, steps)
    figures["auc50"] = round(fmean(race.mean_share(step) for step in range(1, last + 1)), 4)
    figures["hours@50"] = round(fmean(run[last - 1].time_s for run in race.runs) / 3600, 4)
    figures["usd@50"] = round(fmean(run[last - 1].usd for run in race.runs), 4)
    return figures


def gain(ours: Race, theirs: Race, groups: Sequence[int], step: int = AT) -> dict[str, float | None]:
    """Relative difference of the mean shares after ``step`` steps, with its paired 95 % bootstrap interval.

    Seeds are drawn anew within each of ``groups`` (the environment of each seed), those of groups with a
    single one among each other; both policies' together. None where the other policy gained nothing.
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


def in_flight_figures(alone: Race, several: Race, count: int, steps: int) -> dict[str, Any]:
    """How much sooner ``several`` reach what one at a time has after 50 steps, and what a step loses."""
    step = min(AT, steps)
    target = alone.mean_share(step)
    alone_s = fmean(run[step - 1].time_s for run in alone.runs)
    end_s = max(run[-1].time_s for run in several.runs)
    low, high = 0.0, end_s
    faster = None
    if several.mean_share_at(end_s) >= target > 0:
        for _ in range(40):
            middle = (low + high) / 2
            low, high = (low, middle) if several.mean_share_at(middle) >= target else (middle, high)
        faster = round(alone_s / high, 3) if high > 0 else None
    loss = round(1 - several.mean_share(step) / target, 4) if target > 0 else None
    return {"in_flight": count, "times_faster": faster, "loss_per_sample": loss}
