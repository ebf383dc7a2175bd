"""Merge the verdicts on one candidate, one for each workload, into the verdict on the problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.core.judging.flags import DEGENERATE, ProblemFlag
from adaexplore.core.judging.status import Status
from adaexplore.core.judging.workloads import HIDDEN, WorkloadVerdict
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import Workload
from online_judge.checks.facts import precision
from online_judge.checks.problem import TRIVIAL_WORKLOAD
from online_judge.verdict import feedback, flags

SLOW = 0.95
_MOST_FAILED = 3
_HARMLESS = ("hardware", "device", "notes", "sandbox", "error", "stage")
"""Keys of a failure's metadata that reveal nothing about the inputs."""
_OF_PROBLEM = ("problem_flags", "problem_flags_evidence")
_MEANS = (
    *("fast_p", "ci_low", "ci_high", "gpu_ms", "score_ms", "e2e_ms", "mean", "median"),
    *("baseline_gpu_ms", "baseline_e2e_ms", "baseline_clean_ms", "baseline_time"),
    *("sol_ms", "sol_score", "forward_gpu_ms", "baseline_forward_gpu_ms"),
)
"""Keys of a verdict's statistics that become geometric means."""


@dataclass(frozen=True)
class Judged:
    workload: Workload
    verdict: Verdict


def shown_name(workload: Workload) -> str:
    """Return the name that a model may see."""
    return HIDDEN if workload.hidden else f"workload {workload.name!r}"


def says_more(judged: Sequence[Judged]) -> bool:
    """Return True if another workload can add information about a candidate ``judged`` on some."""
    failed = [each.verdict.status for each in judged if not each.verdict.correct]
    decided = any(status is Status.TIMEOUT or status.row.on_all_inputs for status in failed)
    return len(failed) < _MOST_FAILED and not decided


def merged(judged: Sequence[Judged], left: Sequence[Workload]) -> Verdict:
    """Return the verdict on the problem; workloads in ``left`` were not judged."""
    failed = [each for each in judged if not each.verdict.correct]
    entries = [_entry(each) for each in judged]
    entries += [_entry(Judged(each, Verdict(status=Status.NOT_CHECKED))) for each in left]
    if failed:
        shown = [each for each in failed if not each.workload.hidden]
        worst = (shown or failed)[0]
        metadata = _failure(worst, judged, left) | {"workloads": entries}
        metadata["worst_workload"] = _worst(worst, worst.verdict.status.value)
        return Verdict(status=worst.verdict.status, metadata=metadata)
    metadata = _passed(judged) | {"workloads": entries}
    slowest = min(judged, key=lambda each: each.verdict.speedup or math.inf)
    if (speedup := slowest.verdict.speedup) is not None and speedup < SLOW:
        metadata["worst_workload"] = _worst(slowest, f"speedup {speedup:.3g}")
    counted = [each for each in judged if not each.verdict.degenerate] or judged
    runtime_ms = _mean(counted, [each.verdict.runtime_ms for each in counted])
    return Verdict(
        status=Status.PASSED,
        metadata=metadata,
        runtime_ms=runtime_ms,
        runtime_stats=_statistics(judged, counted),
    )


def _worst(judged: Judged, why: str) -> dict[str, str]:
    return {"name": HIDDEN if judged.workload.hidden else judged.workload.name, "why": why}


def _entry(judged: Judged) -> dict[str, object]:
    verdict, workload = judged.verdict, judged.workload
    explains = verdict.feedback and not verdict.correct and not workload.hidden
    return WorkloadVerdict(
        **workload.model_dump(),
        status=verdict.status,
        correctness=verdict.correct,
        speedup=verdict.speedup,
        gpu_ms=verdict.runtime_stats.get("gpu_ms"),
        baseline_gpu_ms=verdict.runtime_stats.get("baseline_gpu_ms"),
        score_ms=verdict.runtime_stats.get("score_ms"),
        baseline_ms=verdict.runtime_stats.get("baseline_time"),
        sol_score=verdict.runtime_stats.get("sol_score"),
        flags=tuple(flag.id for flag in verdict.flags),
        why=feedback.first_line(verdict.metadata) if explains else "",
    ).model_dump(mode="json")


def _failure(worst: Judged, judged: Sequence[Judged], left: Sequence[Workload]) -> dict[str, object]:
    """Return the metadata of the failure on one workload; a hidden one reveals nothing of its inputs."""
    verdict, workload = worst.verdict, worst.workload
    if workload.hidden:
        kept = {key: value for key, value in verdict.metadata.items() if key in _HARMLESS}
        return kept | _flags(judged, left) | feedback.of_hidden(verdict.status)
    if verdict.status.row.on_all_inputs:
        return dict(verdict.metadata)
    passed = sum(each.verdict.correct and not each.workload.hidden for each in judged)
    shown = sum(not each.hidden for each in [*(each.workload for each in judged), *left])
    line = (
        f"it fails on {shown_name(workload)} ({workload.inputs}) and passes on {passed} of {shown} workloads"
    )
    if verdict.status is Status.TIMEOUT:
        line += "; the time limit is that of all workloads together"
    found = _flags(judged, left) | {"feedback": feedback.with_line(line, verdict.feedback)}
    return {key: value for key, value in verdict.metadata.items() if key not in _OF_PROBLEM} | found


def _passed(judged: Sequence[Judged]) -> dict[str, object]:
    """Return the first verdict's metadata, with the lowest precision and the flags of all.

    Errors and limits are those of a workload that is shown.
    """
    metadata = judged[0].verdict.metadata | _flags(judged, [])
    tiers = [each.verdict.tier for each in judged]
    known = [tier for tier in tiers if tier is not None]
    if known:
        least = judged[tiers.index(precision.worst(known))]
        keys = ("tier",) if least.workload.hidden else ("tier", "precision")
        metadata |= {key: least.verdict.metadata[key] for key in keys if key in least.verdict.metadata}
    return metadata


def _flags(judged: Sequence[Judged], left: Sequence[Workload]) -> dict[str, object]:
    """Return the flags of all, each with the first workload on which it was raised.

    The problem is degenerate only if trivial answers pass on all of its workloads; on which ones they pass
    is not known where the kernel failed.
    """
    kernel = [
        flag._replace(evidence=_evidence(each, flag.evidence))
        for each in judged
        for flag in each.verdict.flags
    ]
    degenerate = not left and all(each.verdict.degenerate for each in judged)
    sound = any(each.verdict.correct and not each.verdict.degenerate for each in judged)
    problem: dict[str, ProblemFlag] = {}
    for each in judged:
        for flag in each.verdict.problem_flags:
            id_ = TRIVIAL_WORKLOAD.id if flag.id == DEGENERATE and sound else flag.id
            if flag.id != DEGENERATE or degenerate or sound:
                problem.setdefault(id_, ProblemFlag(id_, _evidence(each, flag.evidence)))
    return flags.metadata(kernel) | flags.problem_metadata(problem.values())


def _evidence(judged: Judged, evidence: str) -> str:
    name = shown_name(judged.workload)
    return name if judged.workload.hidden else f"{name}: {evidence}"


def _statistics(judged: Sequence[Judged], counted: Sequence[Judged]) -> dict[str, object]:
    """Return geometric means over ``counted``, summed use of the GPU, and the keys that are equal on all."""
    found = [each.verdict.runtime_stats for each in judged]
    stats = {key: value for key, value in found[0].items() if all(each.get(key) == value for each in found)}
    for key in _MEANS:
        stats.pop(key, None)
        mean = _mean(counted, [each.verdict.runtime_stats.get(key) for each in counted])
        if mean is not None:
            stats[key] = mean
    if any(each.get("sol_score") == 0 for each in found) and all("sol_score" in each for each in found):
        stats["sol_score"] = 0.0
    uses = [each["slot"] for each in found if "slot" in each]
    if uses:
        stats["slot"] = {key: sum(use[key] for use in uses) for key in ("held_s", "waited_s", "gpu_s")}
    return stats


def _mean(judged: Sequence[Judged], values: Sequence[float | None]) -> float | None:
    """Return the weighted geometric mean; None if a value is missing or not positive."""
    largest = max(each.workload.weight for each in judged)
    weights = [each.workload.weight / largest for each in judged]  # their sum is neither infinite nor 0
    known = [value for value in values if value is not None and value > 0]
    if len(known) < len(judged):
        return None
    total = sum(weight * math.log(value) for weight, value in zip(weights, known, strict=True))
    return math.exp(total / sum(weights))
