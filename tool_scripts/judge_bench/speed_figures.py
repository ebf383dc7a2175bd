"""The figures about time: throughput, latency, the used share of the slot."""

import statistics
from collections.abc import Iterator, Sequence

from adaexplore.core.judging.status import Status
from tool_scripts.judge_bench.figure import Figure, counts, met, quantile
from tool_scripts.judge_bench.records import Batch, Judged, Ledger

RELEASE_AN_HOUR = 424
"""Evaluations per hour of 45 recorded candidates in the released design, one after another.

Measured on an NVIDIA H200 (``results/judge/README.md``).
"""


def throughput(ledger: Ledger) -> Iterator[Figure]:
    """Yield the judge's rate against the released design's."""
    for batch in ledger.of(Batch)[-1:]:
        verdicts = batch.verdicts
        failed = sum(each.error is not None for each in verdicts)
        rate = 3600 * (len(verdicts) - failed) / batch.wall_s
        ratio = rate / RELEASE_AN_HOUR
        yield Figure(
            name="verdicts per GPU-hour, times the released design's on an H200",
            value=f"{ratio:.2f}x ({rate:.0f} against {RELEASE_AN_HOUR} an hour)",
            number=ratio,
            target=">= 5x",
            met=met(ratio < 5, len(verdicts) >= 40),
            samples=f"{len(verdicts)} candidates",
            miss=f"{5 - ratio:.2f}x short" if ratio < 5 else "",
            details={
                "slots": batch.slots,
                "in_flight": batch.in_flight,
                "judge_wall_s": batch.wall_s,
                "judge_start_s": batch.start_s,
                "judge_errors": failed,
                "statuses": counts(each.status for each in verdicts),
            },
        )


def latency(ledger: Ledger) -> Iterator[Figure]:
    """Yield the time from the submission to the verdict, for compile errors and for passing kernels."""
    for kind, status, text, limit in (
        ("compile", Status.COMPILE, "compile errors", 1.5),
        ("pass", Status.PASSED, "passing kernels with 100 timed runs", 4.0),
    ):
        asked = [each for each in ledger.verdicts() if each.unit.startswith(f"latency/{kind}/")]
        mine = [each for each in asked if each.status == status]
        if not mine:
            continue
        seconds = [each.seconds for each in mine]
        middle = statistics.median(seconds)
        first = {each.problem: each.unit for each in reversed(mine)}
        later = [each.seconds for each in mine if first[each.problem] != each.unit]
        yield Figure(
            name=f"submit to verdict, p50, {text}",
            value=f"{middle:.2f} s",
            number=middle,
            target=f"<= {limit} s",
            met=middle <= limit,
            samples=f"{len(mine)} of {len(asked)} candidates have this status",
            miss=f"{middle - limit:.2f} s over" if middle > limit else "",
            details={
                "p10_s": quantile(seconds, 0.1),
                "p90_s": quantile(seconds, 0.9),
                "max_s": max(seconds),
                "p50_after_the_first_of_a_problem_s": statistics.median(later) if later else None,
                "other_statuses": counts(each.status for each in asked if each.status != status),
            },
        )


def busy(ledgers: Sequence[Ledger]) -> Iterator[Figure]:
    """Yield the share of the exclusive slot in which the GPU works."""
    verdicts: list[Judged] = []
    for ledger in ledgers:
        verdicts += ledger.verdicts()
        verdicts += [each for batch in ledger.of(Batch) for each in batch.verdicts]
    spans = [
        (each.slot_gpu_s, each.slot_held_s)
        for each in verdicts
        if each.slot_held_s and each.slot_gpu_s is not None
    ]
    if not spans:
        return
    held = sum(held_s for _, held_s in spans)
    share = sum(gpu_s for gpu_s, _ in spans) / held
    shares = [gpu_s / held_s for gpu_s, held_s in spans]
    yield Figure(
        name="share of the exclusive slot in which the GPU works for candidate or baseline",
        value=f"{share:.1%}",
        number=share,
        target=">= 60 %",
        met=share >= 0.6,
        samples=f"{len(spans)} timed candidates, slot held {held:.0f} s",
        miss=f"{0.6 - share:.1%} short" if share < 0.6 else "",
        details={
            "p10": quantile(shares, 0.1),
            "p50": statistics.median(shares),
            "mean_held_s": held / len(spans),
        },
    )
