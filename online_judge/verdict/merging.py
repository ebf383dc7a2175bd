"""Merge the verdicts on one candidate, one for each workload, into the verdict on the problem."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from adaexplore.core.judging.flags import DEGENERATE, ProblemFlag
from adaexplore.core.judging.parts import DeviceUse, FailureText, RuntimeStats
from adaexplore.core.judging.status import Status
from adaexplore.core.judging.workloads import HIDDEN, WorkloadVerdict, WorstWorkload
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import Workload
from online_judge.checks.facts import precision
from online_judge.checks.problem import TRIVIAL_WORKLOAD
from online_judge.verdict import feedback, flags

SLOW = 0.95
_MOST_FAILED = 3
_HARMLESS = ("hardware", "device", "notes", "sandbox")
"""Fields of a failure that reveal nothing about the inputs."""
_MEANS = (
    *("runtime_ms", "speedup", "ci_low", "ci_high", "gpu_ms", "score_ms", "e2e_ms", "mean", "median"),
    *("baseline_gpu_ms", "baseline_e2e_ms", "baseline_clean_ms", "baseline_ms"),
    *("sol_ms", "sol_score", "forward_gpu_ms", "baseline_forward_gpu_ms"),
)
"""Times of a verdict that become geometric means."""


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
    judged_or_left = [*judged, *(Judged(each, Verdict(status=Status.NOT_CHECKED)) for each in left)]
    found: dict[str, Any] = {"workloads": tuple(map(_entry, judged_or_left))}
    if failed:
        worst = next((each for each in failed if not each.workload.hidden), failed[0])
        found["worst_workload"] = _worst(worst, worst.verdict.status.value)
        return _failure(worst, judged, left).model_copy(update=found)
    found |= _precision(judged) | _flags(judged, [])
    slowest = min(judged, key=lambda each: each.verdict.speedup or math.inf)
    if (speedup := slowest.verdict.speedup) is not None and speedup < SLOW:
        found["worst_workload"] = _worst(slowest, f"speedup {speedup:.3g}")
    counted = [each for each in judged if not each.verdict.degenerate] or judged
    return judged[0].verdict.model_copy(update=found | {"timing": _timing(judged, counted)})


def _worst(judged: Judged, why: str) -> WorstWorkload:
    return WorstWorkload(name=HIDDEN if judged.workload.hidden else judged.workload.name, why=why)


def _entry(judged: Judged) -> WorkloadVerdict:
    verdict, workload, timing = judged.verdict, judged.workload, judged.verdict.timing or RuntimeStats()
    explains = verdict.feedback and not verdict.correct and not workload.hidden
    return WorkloadVerdict(
        **workload.model_dump(),
        status=verdict.status,
        correctness=verdict.correct,
        speedup=verdict.speedup,
        gpu_ms=timing.gpu_ms,
        baseline_gpu_ms=timing.baseline_gpu_ms,
        score_ms=timing.score_ms,
        baseline_ms=timing.baseline_ms,
        sol_score=timing.sol_score,
        flags=tuple(flag.id for flag in verdict.flags),
        why=verdict.feedback.splitlines()[0] if explains else "",
    )


def _failure(worst: Judged, judged: Sequence[Judged], left: Sequence[Workload]) -> Verdict:
    """Return the failure on one workload; a hidden one reveals nothing of its inputs."""
    verdict, workload = worst.verdict, worst.workload
    if workload.hidden:
        facts = FailureText()
        if verdict.status is Status.TIMEOUT:
            facts = FailureText(error=verdict.failure.error, stage=verdict.failure.stage)
        kept = {name: getattr(verdict, name) for name in _HARMLESS if name in verdict.model_fields_set}
        return feedback.of_hidden(verdict.status, facts).model_copy(update=kept | _flags(judged, left))
    if verdict.status.row.on_all_inputs:
        return verdict
    passed = sum(each.verdict.correct and not each.workload.hidden for each in judged)
    shown = sum(not each.hidden for each in [*(each.workload for each in judged), *left])
    line = (
        f"it fails on {shown_name(workload)} ({workload.inputs}) and passes on {passed} of {shown} workloads"
    )
    if verdict.status is Status.TIMEOUT:
        line += "; the time limit is that of all workloads together"
    found = _flags(judged, left) | {"feedback": feedback.with_line(line, verdict.feedback)}
    return verdict.model_copy(update=found)


def _precision(judged: Sequence[Judged]) -> dict[str, Any]:
    """Return the lowest precision; errors and limits are those of a workload that is shown."""
    tiers = [each.verdict.tier for each in judged]
    known = [tier for tier in tiers if tier is not None]
    if not known:
        return {}
    least = judged[tiers.index(precision.worst(known))]
    shown = {} if least.workload.hidden else {"precision": least.verdict.precision}
    return {"tier": least.verdict.tier} | shown


def _flags(judged: Sequence[Judged], left: Sequence[Workload]) -> dict[str, Any]:
    """Return the flags of all, each with the first workload on which it was raised.

    The problem is degenerate only if trivial answers pass on all of its workloads; on which ones they pass
    is not known where the kernel failed.
    """
    kernel = [
        replace(flag, evidence=_evidence(each, flag.evidence))
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
    return {"flags": flags.listed(kernel), "problem_flags": flags.listed_of_problem(problem.values())}


def _evidence(judged: Judged, evidence: str) -> str:
    name = shown_name(judged.workload)
    return name if judged.workload.hidden else f"{name}: {evidence}"


def _timing(judged: Sequence[Judged], counted: Sequence[Judged]) -> RuntimeStats | None:
    """Return geometric means over ``counted``, summed use of the GPU, and the facts that are equal on all."""
    found = [each.verdict.timing for each in judged if each.verdict.timing is not None]
    if len(found) < len(judged):
        return None
    same = found[0].model_fields_set.difference(_MEANS)
    stats: dict[str, Any] = {name: getattr(found[0], name) for name in same}
    stats = {
        name: value for name, value in stats.items() if all(getattr(each, name) == value for each in found)
    }
    for name in _MEANS:
        mean = _mean(counted, [getattr(each.verdict.timing, name) for each in counted])
        if mean is not None:
            stats[name] = mean
    if any(each.sol_score == 0 for each in found) and all(each.sol_score is not None for each in found):
        stats["sol_score"] = 0.0
    uses = [each.use for each in found if each.use is not None]
    if uses:
        held_s, waited_s, gpu_s = (
            sum(getattr(use, name) for use in uses) for name in ("held_s", "waited_s", "gpu_s")
        )
        stats["use"] = DeviceUse(held_s=held_s, waited_s=waited_s, gpu_s=gpu_s)
    return RuntimeStats(**stats)


def _mean(judged: Sequence[Judged], values: Sequence[float | None]) -> float | None:
    """Return the weighted geometric mean; None if a value is missing or not positive."""
    largest = max(each.workload.weight for each in judged)
    weights = [each.workload.weight / largest for each in judged]  # their sum is neither infinite nor 0
    known = [value for value in values if value is not None and value > 0]
    if len(known) < len(judged):
        return None
    total = sum(weight * math.log(value) for weight, value in zip(weights, known, strict=True))
    return math.exp(total / sum(weights))
