"""The figures about right verdicts: honest candidates, repetition, the reference against itself."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

from tool_scripts.judge_bench import own
from tool_scripts.judge_bench.figure import Figure, by_problem, latest, median_of, spread
from tool_scripts.judge_bench.ledger import Ledger
from tool_scripts.judge_bench.records import Judged, PlainRun

LARGE_MS = 0.1
SMALL_MS = 0.02


def honest(ledger: Ledger, plain_ledger: Ledger) -> list[Figure]:
    """Honest candidates that did not simply pass."""
    plain = plain_ledger.of(PlainRun)
    honest = {run.candidate for run in plain if run.outcome == "passed"}
    verdicts = [each for each in latest(ledger.of(Judged)) if each.candidate in honest]
    if not verdicts:
        return []
    wrong = [each for each in verdicts if each.status != "passed" or each.rejects]
    ours = sum(_is_own(each) for each in verdicts)
    details: dict[str, Any] = {
        "plain_outcomes": dict(Counter(run.outcome for run in plain)),
        "recorded": len(verdicts) - ours,
        "own": ours,
        "not_judged_yet": len(honest) - len({each.candidate for each in verdicts}),
        "tiers": dict(Counter(str(each.tier) for each in verdicts)),
        "flags": dict(Counter(flag for each in verdicts for flag in each.flags)),
        "others": [_shown(each) for each in wrong],
    }
    enough = details["not_judged_yet"] == 0 and (ledger.device == "cpu" or details["recorded"] >= 200)
    return [
        Figure(
            name="honest candidates with another status or a reject",
            device=ledger.device,
            value=str(len(wrong)),
            number=len(wrong),
            target="0",
            met=False if wrong else (True if enough else None),
            samples=f"{details['recorded']} recorded and {ours} own candidates",
            miss="; ".join(f"{each.candidate} {_why(each)}" for each in wrong[:8]),
            details=details,
        )
    ]


def repeat(ledger: Ledger) -> list[Figure]:
    """How much the speedup of the same kernel moves."""
    kernels: dict[str, dict[str, Any]] = {}
    for problem, verdicts in by_problem(latest(ledger.of(Judged))).items():
        good = [each for each in verdicts if each.speedup is not None]
        speedups = [float(each.speedup) for each in good if each.speedup is not None]
        if len(speedups) < 2:
            continue
        kernels[problem] = {
            "spread": spread(speedups),
            "speedup": statistics.median(speedups),
            "gpu_ms": median_of(each.gpu_ms for each in good),
            "baseline_ms": median_of(each.baseline_ms for each in good),
            "n": len(speedups),
            "other_statuses": dict(Counter(each.status for each in verdicts if each.status != "passed")),
        }
    found = []
    for kind, text, limit in (
        (own.LARGE, "over 100 us", 0.015),
        (own.SMALL, "of 20 to 100 us", 0.03),
    ):
        mine = {name: each for name, each in kernels.items() if name.startswith(kind)}
        if not mine:
            continue
        missed = {name: each for name, each in mine.items() if each["spread"] > limit}
        fits = [name for name, each in mine.items() if _size_of(each["gpu_ms"]) == kind]
        whole = len(fits) >= 3 and all(each["n"] >= 20 for each in mine.values())
        worst = max(each["spread"] for each in mine.values())
        misplaced = sorted(set(mine) - set(fits))
        found.append(
            Figure(
                name=f"same kernel judged again, (p90 - p10) / median of the speedup, kernels {text}",
                device=ledger.device,
                value=f"worst {worst:.2%}",
                number=worst,
                target=f"<= {limit:.1%}",
                met=False if missed else (True if whole else None),
                samples=f"{len(mine)} kernels x {min(each['n'] for each in mine.values())}",
                miss="; ".join(
                    [f"{name} {each['spread']:.2%}" for name, each in missed.items()]
                    + [f"{name} is not {text}" for name in misplaced]
                ),
                details=mine,
            )
        )
    return found


def again(ledger: Ledger) -> list[Figure]:
    """Return how many candidates get more than one status."""
    verdicts = latest(ledger.of(Judged))
    if not verdicts:
        return []
    statuses: dict[str, Counter[str]] = {}
    for each in verdicts:
        statuses.setdefault(each.candidate, Counter())[each.error or each.status] += 1
    unsteady = {name: dict(found) for name, found in statuses.items() if len(found) > 1}
    return [
        Figure(
            name="candidates that get another status when they are judged again",
            device=ledger.device,
            value=str(len(unsteady)),
            number=len(unsteady),
            samples=f"{len(statuses)} candidates, {len(verdicts)} verdicts",
            miss="; ".join(f"{name} {found}" for name, found in unsteady.items()),
            details={name: dict(found) for name, found in statuses.items()},
        )
    ]


def aa(ledger: Ledger) -> list[Figure]:
    """How often a reference against itself is 1."""
    verdicts = latest(ledger.of(Judged))
    if not verdicts:
        return []
    inside = [each for each in verdicts if _within(each)]
    share = len(inside) / len(verdicts)
    problems: dict[str, dict[str, Any]] = {
        problem: {
            "gpu_ms": median_of(each.gpu_ms for each in mine),
            "speedups": [each.speedup for each in mine],
            "inside": sum(map(_within, mine)),
            "statuses": dict(Counter(each.status for each in mine)),
        }
        for problem, mine in by_problem(verdicts).items()
    }
    enough = len(problems) >= 10 and all(len(each["speedups"]) >= 5 for each in problems.values())
    outside = [f"{each.unit} {each.speedup or each.status}" for each in verdicts if each not in inside]
    return [
        Figure(
            name="the reference against itself within 1.00 +- 0.01 (over 100 us; else 0.02)",
            device=ledger.device,
            value=f"{share:.1%}",
            number=share,
            target=">= 95 %",
            met=False if share < 0.95 else (True if enough else None),
            samples=f"{len(problems)} problems, {len(verdicts)} verdicts",
            miss="; ".join(outside[:12]),
            details=problems,
        )
    ]


def _is_own(verdict: Judged) -> bool:
    return "/step-" not in verdict.candidate


def _within(verdict: Judged) -> bool:
    if verdict.speedup is None or verdict.status != "passed":
        return False
    allowed = 0.01 if (verdict.gpu_ms or 0.0) > LARGE_MS else 0.02
    return abs(verdict.speedup - 1.0) <= allowed


def _size_of(gpu_ms: float | None) -> str | None:
    if gpu_ms is None or gpu_ms < SMALL_MS:
        return None
    return own.LARGE if gpu_ms > LARGE_MS else own.SMALL


def _why(verdict: Judged) -> str:
    return f"{verdict.error or verdict.status} {' '.join(verdict.rejects)}".strip()


def _shown(verdict: Judged) -> dict[str, Any]:
    kept = {"candidate", "status", "error", "tier", "flags", "rejects", "evidence", "feedback", "speedup"}
    return verdict.model_dump(mode="json", include=kept)
