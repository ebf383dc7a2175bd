"""What a slot makes of a reference's time that ends early, and of processes that die."""

from __future__ import annotations

import threading
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from adaexplore.core.errors import ProblemError
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import EvaluationRequest, ProblemRequest, Workload
from online_judge.protocol.endings import Passed, ProcessEnd
from online_judge.protocol.findings import Stage
from online_judge.protocol.messages import Answer, CandidateGone, ProblemRuns
from online_judge.protocol.result import ProfileResult
from online_judge.settings import Settings
from online_judge.slots.baselines import CleanTimes
from online_judge.slots.conversation import ReferenceTimeout
from online_judge.slots.device_slot import DeviceSlot

KNOWN = tuple(Workload(name=name, weight=1.0, inputs="float32[8]") for name in "abc")


def slot() -> DeviceSlot:
    device: Any = Mock(kind="cpu", hardware="cpu")
    return DeviceSlot(Mock(), device, Settings.from_environment({}), Mock(), Mock(), Mock(), Mock())


def evaluate(monkeypatch: pytest.MonkeyPatch, *results: Status | Exception) -> Verdict:
    """Evaluate a candidate whose workloads have these results, one after the other."""
    left = iter(results)

    def judged(slot: DeviceSlot, query: Any) -> tuple[Verdict, tuple[Workload, ...]]:
        result = next(left)
        if isinstance(result, Exception):
            raise result
        return Verdict(status=result, metadata={"feedback": result.value}), KNOWN

    monkeypatch.setattr(DeviceSlot, "_evaluate", judged)
    return slot().evaluate(EvaluationRequest(), None, threading.Event())


def test_failure_outlives_the_references_time(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = evaluate(monkeypatch, Status.PASSED, Status.WRONG_VALUE, ReferenceTimeout("time"))
    assert verdict.status is Status.WRONG_VALUE
    statuses = [each["status"] for each in verdict.metadata["workloads"]]
    assert statuses == ["passed", "wrong_value", "not_checked"]


def test_reference_timeout_without_failure_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReferenceTimeout, match="workload 'c': time"):
        evaluate(monkeypatch, Status.PASSED, Status.PASSED, ReferenceTimeout("time"))


def test_problem_report_names_the_workload_of_a_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    def looked(slot: DeviceSlot, query: Any) -> tuple[ProblemRuns, tuple[Workload, ...]]:
        if query.workload == 1:
            raise ReferenceTimeout("time")
        return ProblemRuns(), KNOWN

    monkeypatch.setattr(DeviceSlot, "_look", looked)
    report = slot().check_problem(ProblemRequest(original_model_src=""), threading.Event())
    assert (report.ok, report.reason) == (False, "workload 'b': time")


def test_reference_failure_on_later_workload_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ProblemError, match="forward"):
        evaluate(monkeypatch, Status.WRONG_VALUE, ProblemError("forward() fails"))


def test_profile_is_retried_after_a_process_died(monkeypatch: pytest.MonkeyPatch) -> None:
    results = iter([CandidateGone(stage=Stage.FORWARD, why=""), ProfileResult(ending=Passed())])
    candidates, device = Mock(), Mock(kind="cuda", hardware="GPU", id=0)
    candidates.take.return_value.end.return_value = ProcessEnd("", "by signal 9", "", died=True)
    forks = Mock(**{"around.return_value": None})
    settings = Settings.from_environment({})
    made = DeviceSlot(forks, device, settings, MagicMock(), candidates, Mock(), CleanTimes())
    monkeypatch.setattr(made, "_evaluators", Mock())
    monkeypatch.setattr(made, "_converse", lambda *parts: Answer(result=next(results)))
    assert made.profile(EvaluationRequest(), threading.Event()).status == "passed"
