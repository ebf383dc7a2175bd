"""Assemble verdicts on candidates. Only this package and the checks decide a status, a flag or a text.

Pure functions from facts (the request, the evaluator's findings, the end of the candidate's process, the
sandbox in force) to a verdict; no torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from adaexplore.core.judging.status import Stage, StatusKind
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest
from online_judge.checks.behaviour.own_kernels import KernelUse
from online_judge.checks.behaviour.process_changes import LeftRunning
from online_judge.checks.behaviour.static_notes import SourceText
from online_judge.checks.check import CheckFact, Severity
from online_judge.checks.facts.endings import Passed, ProcessEnd
from online_judge.checks.facts.precision import least_precise
from online_judge.checks.problem import ProblemFacts
from online_judge.checks.timing.bounds import CallWork
from online_judge.checks.timing.throttling import GpuStates
from online_judge.common.texts import scrub
from online_judge.protocol.result import EvaluationResult
from online_judge.verdict import feedback, flags, runtime
from online_judge.verdict.endings import explain

_LOG_CHARS = 300  # bytes of a candidate's printed text, short enough for a prompt

Report = Mapping[str, object]
"""See :mod:`online_judge.sandbox.read_back`."""


@dataclass(frozen=True)
class Target:
    hardware: str  # name of the device
    device: str  # its name for clients, such as ``cuda:0``
    cuda: bool  # whether kernels run on a GPU


def evaluated(
    request: EvaluationRequest, target: Target, result: EvaluationResult, end: ProcessEnd
) -> Verdict:
    """Return the verdict on a candidate whose evaluation is complete."""
    explained = explain(result.ending, end.folder)
    passed = isinstance(result.ending, Passed)
    problem = result.problem or ProblemFacts(tolerance=request.tolerance)
    found = flags.of_candidate(_facts(request, result, problem), end.folder)
    rejects = [flag for flag in flags.merged(found) if flag.severity == Severity.REJECT]
    rejected = passed and bool(rejects)
    correct = passed and not rejected
    if correct:
        found += flags.of_candidate([LeftRunning(processes=end.orphans)], end.folder)
    if rejected:
        explained = feedback.of_integrity(rejects)
    facts = _precision(result) | {
        "flags": flags.listed(found),
        "problem_flags": flags.listed_of_problem(flags.of_problem(problem)),
    }
    compared = explained.status.row.kind is StatusKind.VALUES  # the number is given even if it is 0
    if passed or result.trials_passed or compared:
        facts["correctness_trials"] = f"({result.trials_passed} / {request.num_correct_trials})"
    if not correct:
        facts |= _printed(end)
    elif result.timing is not None:
        facts["timing"] = runtime.statistics(
            result.timing,
            request,
            result.share,
            hardware=target.hardware,
            device=target.device,
            scored=result.tolerance is not None,  # of a definition
        )
    elif not target.cuda:
        facts["interpreted"] = True
    return _surrounded(explained, request, target, sandbox=end.sandbox, **facts)


def timed_out(
    request: EvaluationRequest, target: Target, *, limit_s: int, stage: Stage, sandbox: Report | None
) -> Verdict:
    return _surrounded(feedback.of_timeout(limit_s, stage), request, target, sandbox=sandbox)


def process_gone(
    request: EvaluationRequest, target: Target, *, stage: Stage, why: str, end: ProcessEnd
) -> Verdict:
    """Return the verdict on a candidate whose process is gone or broke the protocol (``why``)."""
    explained = feedback.of_crash(f"({why})" if why else end.how, stage)
    if end.out_of_memory:
        explained = feedback.of_memory(stage)
    return _surrounded(explained, request, target, sandbox=end.sandbox, **_printed(end))


def evaluator_died_twice(request: EvaluationRequest, target: Target, stage: Stage) -> Verdict:
    crash = feedback.of_crash("together with the judge's own processes, twice,", stage)
    return _surrounded(crash, request, target)


def with_seconds(verdict: Verdict, stage_seconds: Mapping[str, float]) -> Verdict:
    seconds = {stage: round(spent, 3) for stage, spent in stage_seconds.items()}
    return verdict.model_copy(update={"seconds": seconds})


def _facts(request: EvaluationRequest, result: EvaluationResult, problem: ProblemFacts) -> list[CheckFact]:
    """Return all facts about a candidate that flags come from; most need right outputs."""
    found: list[CheckFact] = [SourceText(text=request.custom_model_src), *result.observations]
    if not isinstance(result.ending, Passed):
        return found
    if (timing := result.timing) is not None:
        found += timing.observations
        if timing.peak is not None:
            found.append(
                CallWork(
                    gpu_ms=timing.gpu_ms,
                    peak=timing.peak,
                    output_bytes=timing.output_bytes,
                    read_bytes=timing.read_bytes,
                    flops=timing.flops,
                    dtype=timing.dtype,
                    tier=request.tier,
                    is_trivial=bool(problem.trivial_answers),
                )
            )
        found.append(GpuStates(before=timing.before, after=timing.after))
    if request.backend == "triton" and not problem.empty:
        trivial = problem.trivial_answers or problem.constant_inputs
        decoys = None if trivial else result.passed_without_kernels
        use = KernelUse(launches=result.launches, share=result.share, passed_without_kernels=decoys)
        found.append(use)
    return found


def _surrounded(verdict: Verdict, request: EvaluationRequest, target: Target, **facts: Any) -> Verdict:
    """Return a verdict of status and texts with the device, the two sides' precision, and ``facts``."""
    facts |= {"hardware": target.hardware, "device": target.device}
    if target.cuda and request.tf32 == "paper":
        facts["notes"] = ("tf32_asymmetric",)
    return verdict.model_copy(update=facts)


def _precision(result: EvaluationResult) -> dict[str, Any]:
    if result.tolerance is not None:
        return {"tolerance": result.tolerance}
    if not result.grades:
        return {}
    least = least_precise(result.grades)
    return {"tier": least.tier, "precision": least.precision()}


def _printed(end: ProcessEnd) -> dict[str, Any]:
    text = scrub(end.printed, end.folder).strip()[-_LOG_CHARS:]
    return {"stdout": text} if text else {}
