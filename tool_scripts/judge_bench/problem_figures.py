"""The figures about KernelBench's problems, each judged with its own reference as its candidate."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from tool_scripts.judge_bench.figure import Figure, latest, quantile
from tool_scripts.judge_bench.ledger import Ledger
from tool_scripts.judge_bench.records import Judged

PROBLEMS = 250
ALLOWED = 0.02
SHARE = 0.95
_NAMED = 12


def problems(ledger: Ledger) -> list[Figure]:
    """Return the number of judge errors, and the share of ratios near 1 where any was measured."""
    records = ledger.of(Judged)
    verdicts = latest(records)
    if not verdicts:
        return []
    timed = [each for each in verdicts if each.speedup is not None]
    return [
        _errors(ledger.device, records, verdicts),
        *([_ratios(ledger.device, verdicts, timed)] if timed else []),
    ]


def _errors(device: str, records: Iterable[Judged], verdicts: Sequence[Judged]) -> Figure:
    """Count problems with a judge error in any attempt; a later verdict does not undo it."""
    failed = {each.unit: each for each in records if each.failure == "judge error"}
    outcomes = Counter(each.failure or each.status for each in verdicts)
    whole = len(verdicts) >= PROBLEMS and not outcomes["given up"]
    others = [each for each in verdicts if each.status != "passed" and each.unit not in failed]
    seconds = [each.seconds for each in verdicts]
    return Figure(
        name="KernelBench problems with a judge error, the reference as candidate",
        device=device,
        value=str(len(failed)),
        number=len(failed),
        target="0",
        met=False if failed else (True if whole else None),
        samples="; ".join(
            [_scope(verdicts), ", ".join(f"{count} {name}" for name, count in outcomes.most_common())]
        ),
        miss=_named(f"{each.problem} {each.error}" for each in failed.values()),
        details={
            "outcomes": dict(outcomes),
            "tiers": dict(Counter(str(each.tier) for each in verdicts)),
            "problem_flags": dict(Counter(flag for each in verdicts for flag in each.problem_flags)),
            "seconds": {"p50": quantile(seconds, 0.5), "p90": quantile(seconds, 0.9), "max": max(seconds)},
            "exceptions": [_shown(each) for each in [*failed.values(), *others]],
        },
    )


def _ratios(device: str, verdicts: Sequence[Judged], timed: Sequence[Judged]) -> Figure:
    """Return the share of ratios near 1; an incomplete part misses it once the rest cannot reach it."""
    outside = [each for each in timed if abs((each.speedup or 0.0) - 1.0) > ALLOWED]
    share = 1 - len(outside) / len(timed)
    missing = max(PROBLEMS - len(verdicts), 0)
    best = 1 - len(outside) / (len(timed) + missing)
    return Figure(
        name=f"KernelBench references against themselves within 1.00 +- {ALLOWED}",
        device=device,
        value=f"{share:.1%}",
        number=share,
        target=f">= {SHARE:.0%}",
        met=False if best < SHARE else (None if missing else True),
        samples=f"{_scope(verdicts)}, {len(timed)} with a ratio",
        miss=_named(f"{each.problem} {each.speedup:.3f}" for each in outside),
        details={"exceptions": [_shown(each) for each in outside]},
    )


def _scope(verdicts: Sequence[Judged]) -> str:
    partial = len(verdicts) < PROBLEMS
    return f"partial: {len(verdicts)} of {PROBLEMS} problems" if partial else f"{len(verdicts)} problems"


def _named(texts: Iterable[str]) -> str:
    return "; ".join(list(texts)[:_NAMED])


def _shown(verdict: Judged) -> dict[str, Any]:
    kept = {"status", "error", "feedback", "gpu_ms", "tier", "seconds", "flags", "problem_flags"}
    level, _, name = verdict.problem.partition("-")
    facts = {"problem": name, "level": level.removeprefix("level"), "ratio": verdict.speedup}
    return facts | verdict.model_dump(mode="json", include=kept)
