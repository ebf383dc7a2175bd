"""Reports of profiles, from what was found and how the candidate's process ended."""

from __future__ import annotations

from adaexplore.core.verdict import Status
from adaexplore.core.wire import ProfileReport
from online_judge.protocol.findings import Stage
from online_judge.protocol.result import ProfileResult
from online_judge.verdict.endings import explain


def profiled(result: ProfileResult, folder: str) -> ProfileReport:
    """Return the report on a candidate that was profiled, or that failed meanwhile."""
    explained = explain(result.ending, folder)
    message = str(explained.metadata.get("feedback", ""))
    if explained.status is Status.PASSED and result.profile is None:
        message = "the profiler does not work here, or saw nothing"
    return ProfileReport(status=explained.status.value, profile=result.profile, message=message)


def without_gpu() -> ProfileReport:
    message = "profiles need a judge with a GPU"
    return ProfileReport(status=Status.NOT_CHECKED.value, profile=None, message=message)


def timed_out(limit_s: int, stage: Stage) -> ProfileReport:
    message = f"not done after {limit_s} s during {stage.value}"
    return ProfileReport(status=Status.TIMEOUT.value, profile=None, message=message)


def process_gone(how: str) -> ProfileReport:
    """Return the report on a candidate that ended as ``how`` says after "the process ended"."""
    return ProfileReport(status=Status.CRASH.value, profile=None, message=f"the process ended {how}")
