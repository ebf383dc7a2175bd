"""The figures about time: the naive design, throughput, latency, the share of the slot that is used."""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Sequence

from tool_scripts.judge_bench.figure import Figure, latest, quantile
from tool_scripts.judge_bench.ledger import Ledger
from tool_scripts.judge_bench.records import Batch, Judged, NaiveRun

_RELEASE_S = (5.8, 32.8)


def naive(ledger: Ledger) -> list[Figure]:
    """What an evaluation of the released design takes, and why."""
    runs = ledger.of(NaiveRun)
    ended = [run for run in runs if run.outcome != "timeout"]
    if not ended:
        return []
    mean = statistics.fmean(run.seconds for run in ended)
    passed = [run for run in ended if run.outcome == "passed"]
    low, high = _RELEASE_S
    place = "below" if mean < low else "above" if mean > high else "inside"
    stages = _mean_stages(ended)
    known = sum(stages.values())
    largest = sorted(stages.items(), key=lambda item: -item[1])[:3]
    explained = (
        f"{place} the release's {low} to {high} s (8 kernels that pass): "
        + ", ".join(f"{name} {seconds:.1f} s" for name, seconds in largest)
        + f" of {known:.1f} s in known stages; "
        + (f"passing ones take {statistics.fmean(r.seconds for r in passed):.1f} s; " if passed else "")
        + "failing ones end early, nothing waits for a queue or a client"
    )
    return [
        Figure(
            name="the naive design, mean seconds of an evaluation",
            device=ledger.device,
            value=f"{mean:.1f} s",
            number=mean,
            samples=f"{len(ended)} ended, {len(runs) - len(ended)} timed out",
            details={
                "explained": explained,
                "outcomes": dict(Counter(run.outcome for run in runs)),
                "min_s": min(run.seconds for run in ended),
                "max_s": max(run.seconds for run in ended),
                "stages_s": stages,
                "stages_of_passing_s": _mean_stages(passed),
            },
        )
    ]


def throughput(ledger: Ledger, naive_ledger: Ledger) -> list[Figure]:
    """The judge's rate against the naive design's on the same candidates."""
    batches = ledger.of(Batch)
    if not batches:
        return []
    batch = batches[-1]
    runs = {run.candidate: run for run in naive_ledger.of(NaiveRun)}
    verdicts = [each for each in batch.verdicts if each.candidate in runs]
    failed = [each for each in verdicts if each.error is not None]
    naive_s = sum(runs[each.candidate].seconds for each in verdicts)
    counted = len(verdicts) - len(failed)
    rate, naive_rate = 3600 * counted / batch.wall_s, 3600 * len(verdicts) / naive_s
    ratio = rate / naive_rate
    differ = [
        f"{each.candidate}: naive {runs[each.candidate].outcome}, judge {each.status}"
        for each in verdicts
        if (runs[each.candidate].outcome == "passed") != (each.status == "passed")
    ]
    return [
        Figure(
            name="verdicts per GPU-hour, times the naive design's",
            device=ledger.device,
            value=f"{ratio:.2f}x ({rate:.0f} against {naive_rate:.0f} an hour)",
            number=ratio,
            target=">= 5x",
            met=ratio >= 5 if len(verdicts) >= 40 else (None if ratio >= 5 else False),
            samples=f"{len(verdicts)} candidates",
            miss=f"{5 - ratio:.2f}x short" if ratio < 5 else "",
            details={
                "slots": batch.slots,
                "in_flight": batch.in_flight,
                "judge_wall_s": batch.wall_s,
                "judge_start_s": batch.start_s,
                "naive_wall_s": naive_s,
                "naive_timeouts": sum(run.outcome == "timeout" for run in runs.values()),
                "judge_errors": len(failed),
                "statuses": dict(Counter(each.status for each in verdicts)),
                "outcomes_that_differ": differ,
            },
        )
    ]


def latency(ledger: Ledger) -> list[Figure]:
    """From the submission to the verdict."""
    verdicts = latest(ledger.of(Judged))
    found = []
    for kind, status, text, limit in (
        ("compile", "compile", "compile errors", 1.5),
        ("pass", "passed", "passing kernels with 100 timed runs", 4.0),
    ):
        asked = [each for each in verdicts if each.unit.startswith(f"latency/{kind}/")]
        mine = [each for each in asked if each.status == status]
        if not mine:
            continue
        seconds = [each.seconds for each in mine]
        middle = statistics.median(seconds)
        first = {each.problem: each.unit for each in reversed(mine)}
        later = [each.seconds for each in mine if first[each.problem] != each.unit]
        found.append(
            Figure(
                name=f"submit to verdict, p50, {text}",
                device=ledger.device,
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
                    "other_statuses": dict(Counter(each.status for each in asked if each.status != status)),
                },
            )
        )
    return found


def busy(ledgers: Sequence[Ledger]) -> list[Figure]:
    """How much of the exclusive slot the GPU works, over the verdicts of these parts."""
    verdicts: list[Judged] = []
    for ledger in ledgers:
        verdicts += latest(ledger.of(Judged))
        verdicts += [each for batch in ledger.of(Batch) for each in batch.verdicts]
    timed = [each for each in verdicts if each.slot_held_s and each.slot_gpu_s is not None]
    if not timed:
        return []
    held = sum(each.slot_held_s or 0.0 for each in timed)
    share = sum(each.slot_gpu_s or 0.0 for each in timed) / held
    each_share = [(each.slot_gpu_s or 0.0) / (each.slot_held_s or 1.0) for each in timed]
    return [
        Figure(
            name="share of the exclusive slot in which the GPU works for candidate or baseline",
            device=ledgers[0].device,
            value=f"{share:.1%}",
            number=share,
            target=">= 60 %",
            met=share >= 0.6,
            samples=f"{len(timed)} timed candidates, slot held {held:.0f} s",
            miss=f"{0.6 - share:.1%} short" if share < 0.6 else "",
            details={
                "p10": quantile(each_share, 0.1),
                "p50": statistics.median(each_share),
                "mean_held_s": held / len(timed),
            },
        )
    ]


def _mean_stages(runs: Sequence[NaiveRun]) -> dict[str, float]:
    """Mean seconds of each stage over all of ``runs``; a stage that a run did not reach counts 0."""
    names = dict.fromkeys(name for run in runs for name in run.stages_s)
    return {name: statistics.fmean(run.stages_s.get(name, 0.0) for run in runs) for name in names}
