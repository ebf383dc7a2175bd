"""What a slot makes of a reference's time that ends early, and of processes that die."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock, Mock

import pytest

from adaexplore.core.errors import ProblemError
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import EvaluationRequest, ProblemRequest, Workload
from online_judge.processes.gpu_lease import GpuLeases
from online_judge.protocol.endings import Passed, ProcessEnd
from online_judge.protocol.findings import Stage
from online_judge.protocol.measurement import CleanMs
from online_judge.protocol.messages import Answer, CandidateGone, Job, ProblemRuns
from online_judge.protocol.observations import BaselineMoved
from online_judge.protocol.result import ProfileResult
from online_judge.settings import Settings
from online_judge.slots.baselines import CleanTimes
from online_judge.slots.conversation import ReferenceTimeout
from online_judge.slots.device_slot import DeviceSlot

from .test_assemble import result, timing

REQUEST = EvaluationRequest(custom_model_src="x = 1", measure_performance=True)
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


class Timed:
    """A slot of a GPU whose evaluators measure the given times of one baseline: before, after, clean."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, leases: GpuLeases, *times: tuple[float, ...]) -> None:
        self.left = list(times)
        self.jobs: list[Job] = []
        self.known = CleanTimes()
        candidates, device = Mock(), Mock(kind="cuda", hardware="GPU", id=0)
        candidates.take.return_value.end.return_value = ProcessEnd("", "with exit code 0", "")
        forks = Mock(**{"around.return_value": None, "generation": 1})
        settings = Settings.from_environment({})
        self.slot = DeviceSlot(forks, device, settings, leases, candidates, Mock(), self.known)
        self.evaluators = Mock()
        monkeypatch.setattr(self.slot, "_evaluators", self.evaluators)
        monkeypatch.setattr(self.slot, "_converse", self.answer)

    def answer(self, evaluator: Any, query: Any, job: Job, candidate: Any) -> Answer:
        self.jobs.append(job)
        clean_ms, after_ms = self.left.pop(0)
        slow = after_ms > 1.15 * clean_ms
        moved = BaselineMoved(
            gpu_ms=after_ms, clean_ms=clean_ms, after_ms=after_ms, counted_ms=clean_ms, stays_slow=slow
        )
        numbers = timing(speedup=clean_ms, observations=(moved,))
        return Answer(result=result(timing=numbers, clean_ms=CleanMs(clean_ms, clean_ms)))

    def evaluate(self, recorded_ms: float | None = None) -> Verdict:
        return self.slot.evaluate(REQUEST, recorded_ms, threading.Event())

    @property
    def asked(self) -> list[tuple[bool, CleanMs | None, bool]]:
        """Of each attempt: alone, the clean time it was told, whether its evaluator had no candidate."""
        fresh = [call.kwargs["untouched"] for call in self.evaluators.of.call_args_list]
        return [(job.alone, job.clean_ms, each) for job, each in zip(self.jobs, fresh, strict=True)]


@pytest.fixture
def leases(tmp_path: Path) -> GpuLeases:
    return GpuLeases(tmp_path / "lock")


def test_baseline_that_stays_slow_is_timed_again_alone(
    monkeypatch: pytest.MonkeyPatch, leases: GpuLeases
) -> None:
    timed = Timed(monkeypatch, leases, (1.0, 1.0), (1.0, 9.0), (2.0, 2.0), (2.0, 2.0))
    assert [timed.evaluate().speedup for _ in range(3)] == [1.0, 2.0, 2.0]
    once, now = CleanMs(1.0, 1.0), CleanMs(2.0, 2.0)
    assert timed.asked == [
        (False, None, True),
        (False, once, False),
        (True, None, True),  # the second job again
        (False, now, False),
    ]
    assert timed.evaluators.of.return_value.end.call_count == 1


def test_baseline_slowed_twice_counts_as_before(monkeypatch: pytest.MonkeyPatch, leases: GpuLeases) -> None:
    timed = Timed(monkeypatch, leases, (1.0, 9.0), (1.1, 9.0))
    assert timed.evaluate().speedup == 1.1
    assert timed.left == []
    assert timed.evaluators.of.return_value.end.call_count == 2


def test_recorded_baseline_may_stay_slow(monkeypatch: pytest.MonkeyPatch, leases: GpuLeases) -> None:
    timed = Timed(monkeypatch, leases, (1.0, 9.0))
    timed.evaluate(recorded_ms=3.0)
    assert len(timed.jobs) == 1


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
