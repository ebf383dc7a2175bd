"""What one candidate process and its evaluator left, and the verdict on it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from adaexplore.core.verdict import Status, Verdict
from online_judge.processes.process_handle import Report
from online_judge.protocol.findings import Stage
from online_judge.verdict import feedback, flags
from online_judge.verdict.flags import Flag


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


def verdict_of(played: Played, facts: dict[str, Any], limit_s: int) -> Verdict:
    """Return the verdict on a candidate; ``died`` in its metadata says that a signal killed the process.

    Args:
        played: what its evaluation left.
        facts: metadata that every verdict carries.
        limit_s: time that the candidate had.
    """
    facts = facts | {"sandbox": played.sandbox}
    if played.timed_out is not None:
        timeout = feedback.of_timeout(limit_s, played.timed_out)
        return Verdict(status=Status.TIMEOUT, metadata=facts | timeout)
    assert played.result is not None
    printed = feedback.log_tail(feedback.scrub(played.report.log, played.folder))
    tail = {"stdout": printed} if printed else {}
    if played.gone:
        why = played.result["why"]
        stage = Stage(played.result["stage"])
        if played.report.out_of_memory:
            return Verdict(status=Status.OUT_OF_MEMORY, metadata=facts | feedback.of_memory(stage) | tail)
        how = f"({why})" if why else played.report.how
        crash = feedback.of_crash(how, stage) | tail
        died = {"died": True} if played.report.died and not why else {}
        return Verdict(status=Status.CRASH, metadata=facts | crash | died)
    verdict = Verdict.model_validate(played.result["verdict"])
    more = {} if verdict.correct else tail
    if played.report.orphans and verdict.correct:
        evidence = f"{played.report.orphans} processes were left running"
        more = flags.added(verdict.metadata, Flag("background_threads", evidence))
    return verdict.model_copy(update={"metadata": verdict.metadata | more}) if more else verdict
