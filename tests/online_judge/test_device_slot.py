"""A candidate on several workloads, when the reference's time ends before the last one."""

from __future__ import annotations

import threading
from typing import Any
from unittest.mock import Mock

import pytest

from adaexplore.core.errors import ProblemError
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import EvaluationRequest, ProblemRequest, Workload
from online_judge.protocol.messages import ProblemRuns
from online_judge.settings import Settings
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
