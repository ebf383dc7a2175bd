"""The figures about right verdicts and equal times."""

import statistics
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

from adaexplore.core.judging.status import Status
from tool_scripts.judge_bench import own
from tool_scripts.judge_bench.candidates import grouped
from tool_scripts.judge_bench.figure import Figure, counts, median_of, met, quantile, spread
from tool_scripts.judge_bench.records import Judged, Ledger, PlainRun

LARGE_MS = 0.1
SMALL_MS = 0.02
PROBLEMS = 250
ALLOWED = 0.02
SHARE = 0.95
_NAMED = 12


def honest(plain_ledger: Ledger, ledger: Ledger) -> Iterator[Figure]:
    """Yield the number of honest candidates that did not simply pass."""
    plain = plain_ledger.of(PlainRun)
    honest = {run.candidate for run in plain if run.outcome == "passed"}
    verdicts = [each for each in ledger.verdicts() if each.candidate in honest]
    if not verdicts:
        return
    wrong = [each for each in verdicts if each.status != Status.PASSED or each.rejects]
    recorded = sum("/step-" in each.candidate for each in verdicts)
    left = len(honest) - len({each.candidate for each in verdicts})
    kept = {"candidate", "status", "error", "tier", "flags", "rejects", "evidence", "feedback", "speedup"}
    why = [f"{each.candidate} {each.error or each.status} {' '.join(each.rejects)}".strip() for each in wrong]
    yield Figure(
        name="honest candidates with another status or a reject",
        value=str(len(wrong)),
        number=len(wrong),
        target="0",
        met=met(wrong, left == 0 and (ledger.device == "cpu" or recorded >= 200)),
        samples=f"{recorded} recorded and {len(verdicts) - recorded} own candidates",
        miss="; ".join(why[:8]),
        details={
            "plain_outcomes": counts(run.outcome for run in plain),
            "recorded": recorded,
            "own": len(verdicts) - recorded,
            "not_judged_yet": left,
            "tiers": counts(each.tier for each in verdicts),
            "flags": counts(flag for each in verdicts for flag in each.flags),
            "others": [each.model_dump(mode="json", include=kept) for each in wrong],
        },
    )


def repeat(ledger: Ledger) -> Iterator[Figure]:
    """Yield the spread of the same kernel's speedup, for large and for small kernels."""
    kernels: dict[str, dict[str, Any]] = {}
    for problem, verdicts in grouped(ledger.verdicts(), lambda each: each.problem).items():
        good = [each for each in verdicts if each.speedup is not None]
        speedups = [each.speedup or 0.0 for each in good]
        if len(speedups) >= 2:
            kernels[problem] = {
                "spread": spread(speedups),
                "speedup": statistics.median(speedups),
                "gpu_ms": median_of(each.gpu_ms for each in good),
                "baseline_ms": median_of(each.baseline_ms for each in good),
                "n": len(speedups),
                "other_statuses": counts(each.status for each in verdicts if each.status != Status.PASSED),
            }
    for kind, text, limit in ((own.LARGE, "over 100 us", 0.015), (own.SMALL, "of 20 to 100 us", 0.03)):
        mine = {name: each for name, each in kernels.items() if name.startswith(kind)}
        if not mine:
            continue
        missed = [f"{name} {each['spread']:.2%}" for name, each in mine.items() if each["spread"] > limit]
        fits = [name for name, each in mine.items() if _size_of(each["gpu_ms"]) == kind]
        least, worst = min(each["n"] for each in mine.values()), max(each["spread"] for each in mine.values())
        yield Figure(
            name=f"same kernel judged again, (p90 - p10) / median of the speedup, kernels {text}",
            value=f"worst {worst:.2%}",
            number=worst,
            target=f"<= {limit:.1%}",
            met=met(missed, len(fits) >= 3 and least >= 20),
            samples=f"{len(mine)} kernels x {least}",
            miss="; ".join(missed + [f"{name} is not {text}" for name in sorted(set(mine) - set(fits))]),
            details=mine,
        )


def again(ledger: Ledger) -> Iterator[Figure]:
    """Yield the number of candidates with more than one status."""
    verdicts = ledger.verdicts()
    statuses: dict[str, Counter[str]] = {}
    for each in verdicts:
        statuses.setdefault(each.candidate, Counter())[each.error or each.status] += 1
    unsteady = [f"{name} {dict(found)}" for name, found in statuses.items() if len(found) > 1]
    if verdicts:
        yield Figure(
            name="candidates that get another status when they are judged again",
            value=str(len(unsteady)),
            number=len(unsteady),
            samples=f"{len(statuses)} candidates, {len(verdicts)} verdicts",
            miss="; ".join(unsteady),
            details={name: dict(found) for name, found in statuses.items()},
        )


def aa(ledger: Ledger) -> Iterator[Figure]:
    """Yield the share of references whose speedup over themselves is near 1."""
    verdicts = ledger.verdicts()
    if not verdicts:
        return
    outside = [each for each in verdicts if not _within(each)]
    share = (len(verdicts) - len(outside)) / len(verdicts)
    problems = grouped(verdicts, lambda each: each.problem)
    enough = len(problems) >= 10 and all(len(mine) >= 5 for mine in problems.values())
    yield Figure(
        name="the reference against itself within 1.00 +- 0.01 (over 100 us; else 0.02)",
        value=f"{share:.1%}",
        number=share,
        target=">= 95 %",
        met=met(share < 0.95, enough),
        samples=f"{len(problems)} problems, {len(verdicts)} verdicts",
        miss=_named(f"{each.unit} {each.speedup or each.status}" for each in outside),
        details={
            problem: {
                "gpu_ms": median_of(each.gpu_ms for each in mine),
                "speedups": [each.speedup for each in mine],
                "inside": sum(map(_within, mine)),
                "statuses": counts(each.status for each in mine),
            }
            for problem, mine in problems.items()
        },
    )


def problems(ledger: Ledger) -> Iterator[Figure]:
    """Yield the number of judge errors and, if any was measured, the share of ratios near 1.

    A later verdict does not undo a judge error. While problems are missing, the share is missed only if they
    cannot bring it to the target.
    """
    verdicts = ledger.verdicts()
    if not verdicts:
        return
    parts = ledger.part.split("-")[1:]
    variant = f" ({', '.join(parts)})" if parts else ""
    whole = len(verdicts) >= PROBLEMS
    scope = f"{len(verdicts)} problems" if whole else f"partial: {len(verdicts)} of {PROBLEMS} problems"
    failed = {each.unit: each for each in ledger.of(Judged) if each.failure == "judge error"}
    others = [each for each in verdicts if each.status != Status.PASSED and each.unit not in failed]
    outcomes = Counter(each.failure or each.status for each in verdicts)
    seconds = [each.seconds for each in verdicts]
    yield Figure(
        name=f"KernelBench problems with a judge error, the reference as candidate{variant}",
        value=str(len(failed)),
        number=len(failed),
        target="0",
        met=met(failed, whole and not outcomes["given up"]),
        samples=f"{scope}; {', '.join(f'{count} {name}' for name, count in outcomes.most_common())}",
        miss=_named(f"{each.problem} {each.error}" for each in failed.values()),
        details={
            "outcomes": dict(outcomes),
            "tiers": counts(each.tier for each in verdicts),
            "problem_flags": counts(flag for each in verdicts for flag in each.problem_flags),
            "seconds": {"p50": quantile(seconds, 0.5), "p90": quantile(seconds, 0.9), "max": max(seconds)},
            "exceptions": [_exception(each) for each in [*failed.values(), *others]],
        },
    )
    timed = [each for each in verdicts if each.speedup is not None]
    if not timed:
        return
    outside = [each for each in timed if abs((each.speedup or 0.0) - 1.0) > ALLOWED]
    share = 1 - len(outside) / len(timed)
    missing = max(PROBLEMS - len(verdicts), 0)
    yield Figure(
        name=f"KernelBench references against themselves within 1.00 +- {ALLOWED}{variant}",
        value=f"{share:.1%}",
        number=share,
        target=f">= {SHARE:.0%}",
        met=met(1 - len(outside) / (len(timed) + missing) < SHARE, not missing),
        samples=f"{scope}, {len(timed)} with a ratio",
        miss=_named(f"{each.problem} {each.speedup:.3f}" for each in outside),
        details={"exceptions": [_exception(each) for each in outside]},
    )


def _size_of(gpu_ms: float | None) -> str | None:
    if gpu_ms is None or gpu_ms < SMALL_MS:
        return None
    return own.LARGE if gpu_ms > LARGE_MS else own.SMALL


def _within(verdict: Judged) -> bool:
    if verdict.speedup is None or verdict.status != Status.PASSED:
        return False
    return abs(verdict.speedup - 1.0) <= (0.01 if (verdict.gpu_ms or 0.0) > LARGE_MS else 0.02)


def _named(texts: Iterable[str]) -> str:
    return "; ".join(list(texts)[:_NAMED])


def _exception(verdict: Judged) -> dict[str, Any]:
    kept = {"status", "error", "feedback", "gpu_ms", "tier", "seconds", "flags", "problem_flags"}
    level, _, name = verdict.problem.partition("-")
    facts = {"problem": name, "level": level.removeprefix("level"), "ratio": verdict.speedup}
    return facts | verdict.model_dump(mode="json", include=kept)
