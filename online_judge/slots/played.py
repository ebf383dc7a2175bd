"""What one candidate process and its evaluator left, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adaexplore.core.errors import JudgeError
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import EvaluationRequest
from online_judge.processes.process_handle import Report
from online_judge.protocol.findings import Stage
from online_judge.protocol.result import EvaluationResult
from online_judge.verdict import assemble
from online_judge.verdict.assemble import ProcessEnd, Target


@dataclass(frozen=True)
class Played:
    """What one candidate process and its evaluator left.

    Attributes:
        folder: where the process ran; removed by now.
        report: how it ended.
        result: the evaluator's finding; None where the candidate's time was up.
        gone: whether the process died before the evaluator had a finding.
        timed_out: the stage in which the candidate's time was up; None where it was not.
        sandbox: what was in force around it.
        late: the evaluator's finding after that.
    """

    folder: str
    report: Report
    result: dict[str, Any] | None
    gone: bool
    timed_out: Stage | None
    sandbox: dict[str, Any] | None
    late: dict[str, Any] | None = None


def verdict_of(played: Played, request: EvaluationRequest, target: Target, limit_s: int) -> Verdict:
    """Return the verdict on a candidate; ``died`` in its metadata says that a signal killed the process.

    Args:
        played: what its evaluation left.
        request: what was asked.
        target: what it ran on.
        limit_s: time that the candidate had.

    Raises:
        JudgeError: the evaluator's result cannot be read.
    """
    report = played.report
    if played.timed_out is not None:
        return assemble.timed_out(
            request, target, limit_s=limit_s, stage=played.timed_out, sandbox=played.sandbox
        )
    assert played.result is not None
    end = ProcessEnd(
        folder=played.folder,
        how=report.how,
        printed=report.log,
        out_of_memory=report.out_of_memory,
        orphans=report.orphans,
        sandbox=played.sandbox,
    )
    if played.gone:
        why, stage = played.result["why"], Stage(played.result["stage"])
        verdict = assemble.process_gone(request, target, stage=stage, why=why, end=end)
        died = report.died and not why and verdict.status is Status.CRASH
        return verdict.model_copy(update={"metadata": verdict.metadata | {"died": True}} if died else {})
    try:
        result = EvaluationResult.from_json(played.result["evaluation"])
    except (KeyError, RecursionError, ValueError) as error:
        raise JudgeError("the evaluator's result cannot be read") from error
    return assemble.evaluated(request, target, result, end)
