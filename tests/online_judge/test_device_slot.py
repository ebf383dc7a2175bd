"""What a slot makes of a reference's time that ends early, and of processes that die."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest

from adaexplore.core.errors import ProblemError
from adaexplore.core.judging.status import Stage, Status
from adaexplore.core.verdict import Verdict
from adaexplore.core.wire import EvaluationRequest, ProblemRequest, Workload
from online_judge.checks.facts.endings import Passed, ProcessEnd
from online_judge.checks.timing.timed_outputs import TimedOutputWrong
from online_judge.processes.gpu_lease import GpuLeases
from online_judge.protocol.config_sweep import SweepTerms, Swept
from online_judge.protocol.measurement import CleanMs
from online_judge.protocol.messages import Answer, BaselineTimed, CandidateGone, Failed, Job, ProblemRuns
from online_judge.protocol.result import ProfileResult
from online_judge.settings import Settings
from online_judge.slots.baselines import CleanTimes
from online_judge.slots.conversation import ProcessLost, ReferenceTimeout
from online_judge.slots.device_slot import DeviceSlot
from tests.verdicts import make_verdict, metadata_of

from .test_assemble import result, timing

REQUEST = EvaluationRequest(custom_model_src="x = 1", measure_performance=True)
FAILED = Failed(kind="reference_failed", reason="it fails", broken=False)
DIED = ProcessLost("reference", Stage.TIMING)
GONE = CandidateGone(stage=Stage.FORWARD, why="")
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
        return make_verdict(status=result, metadata={"feedback": result.value}), KNOWN

    monkeypatch.setattr(DeviceSlot, "_evaluate", judged)
    return slot().evaluate(EvaluationRequest(), None, threading.Event())


def test_failure_outlives_the_references_time(monkeypatch: pytest.MonkeyPatch) -> None:
    verdict = evaluate(monkeypatch, Status.PASSED, Status.WRONG_VALUE, ReferenceTimeout("time"))
    assert verdict.status is Status.WRONG_VALUE
    statuses = [each["status"] for each in metadata_of(verdict)["workloads"]]
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
    """A slot of a GPU; its evaluators give the ``results``, one after the other.

    They are times of the baseline alone, ``(before, after)`` those of an evaluation, or findings.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, leases: GpuLeases) -> None:
        self.results: list[Any] = []
        self.asked: list[tuple[Any, ...]] = []
        self.names: list[str] = []
        self.spent: list[dict[Any, float]] = []
        self.known = CleanTimes()
        candidates, device = Mock(), Mock(kind="cuda", hardware="GPU", id=0)
        candidates.take.return_value.end.return_value = ProcessEnd("", "by signal 9", "", died=True)
        forks = Mock(**{"around.return_value": None, "generation": 1})
        settings = Settings.from_environment({})
        self.slot = DeviceSlot(forks, device, settings, leases, candidates, Mock(), self.known)
        self.evaluators = Mock()
        self.evaluator = self.evaluators.of.return_value
        monkeypatch.setattr(self.slot, "_evaluators", self.evaluators)
        monkeypatch.setattr(self.slot, "_converse", self.answer)

    def answer(self, evaluator: Any, query: Any, job: Job, candidate: Any = None) -> Answer:
        """Note what is asked: operation, workload, clean time, "untouched" and "alone" where it is so."""
        assert (candidate is None) == (job.op == "baseline")
        untouched = self.evaluators.of.call_args.kwargs.get("untouched", False)
        clean_ms = None if job.clean_ms is None else job.clean_ms.gpu
        details = ["untouched"] * untouched + ["alone"] * job.alone
        self.asked.append((job.op, job.workload, clean_ms, *details))
        self.names.append(job.name)
        self.slot.stage_seconds = {"timing": float(len(self.asked))}
        self.spent.append(dict(query.spent or {"reference": 0.0}))
        self.slot._spent = {"reference": self.spent[-1]["reference"] + 1.0}
        found = self.results.pop(0)
        if isinstance(found, Exception):
            raise found
        if isinstance(found, float):
            found = BaselineTimed(ms=CleanMs(found, found, found))
        elif isinstance(found, tuple):
            speedup, after_ms, *changes = found
            known: dict[str, Any] = {"recorded": job.recorded_ms is not None} | dict(*changes)
            known["baseline_stays_slow"] = after_ms > 1.15 * speedup
            found = result(timing=timing(speedup=speedup, **known))
        return Answer(result=found, workloads=KNOWN[: self.workloads])

    workloads = 0

    def evaluate(self, recorded_ms: float | None = None, **fields: Any) -> Verdict:
        return self.slot.evaluate(REQUEST.model_copy(update=fields), recorded_ms, threading.Event())


@pytest.fixture
def timed(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Timed:
    return Timed(monkeypatch, GpuLeases(tmp_path / "lock"))


def test_clean_time_is_measured_once_before_a_candidate(timed: Timed) -> None:
    timed.results = [1.0, GONE, GONE, (1.0, 1.0)]
    assert [timed.evaluate().status for _ in range(2)] == [Status.CRASH, Status.PASSED]
    first = [("baseline", 0, None, "untouched"), ("evaluate", 0, 1.0), ("evaluate", 0, 1.0)]
    assert timed.asked == [*first, ("evaluate", 0, 1.0)]
    assert timed.evaluator.touched is True


@pytest.mark.parametrize("op", ["checked", "profile", "sweep"])
def test_only_a_timing_needs_a_clean_time(timed: Timed, op: str) -> None:
    if op == "checked":
        timed.results = [result()]
        timed.evaluate(measure_performance=False)
    elif op == "profile":
        timed.results = [ProfileResult(ending=Passed())]
        timed.slot.profile(REQUEST, threading.Event())
    else:
        timed.results = [Swept()]
        timed.slot.sweep(REQUEST, SweepTerms(10.0, (3,)), threading.Event())
    assert timed.asked == [("evaluate" if op == "checked" else op, 0, None)]


def test_gpu_in_use_is_not_asked_each_time(timed: Timed) -> None:
    timed.results = [BaselineTimed(ms=None), BaselineTimed(ms=None), (1.0, 1.0), (1.0, 1.0)]
    assert [timed.evaluate().status for _ in range(2)] == [Status.PASSED] * 2
    assert timed.asked == [
        ("baseline", 0, None, "untouched"),
        ("baseline", 0, None, "untouched", "alone"),
        ("evaluate", 0, None, "alone"),
        ("evaluate", 0, None),
    ]


def test_slowed_baseline_is_timed_again_alone(timed: Timed) -> None:
    timed.results = [1.0, (1.0, 9.0), 2.0, (2.0, 2.0), (2.0, 2.0)]
    assert [timed.evaluate().speedup for _ in range(2)] == [2.0, 2.0]
    assert timed.asked[1:] == [
        ("evaluate", 0, 1.0),
        ("baseline", 0, None, "untouched", "alone"),
        ("evaluate", 0, 2.0, "alone"),
        ("evaluate", 0, 2.0),
    ]
    assert timed.evaluator.end.call_count == 1
    first, _, again, second, other = timed.names
    assert again == second  # the same inputs, because times may depend on them
    assert len({first, again, other}) == 3


SLOW_HOST = (0.1, 0.1, {"baseline_slowed": True})


def test_job_on_a_slow_host_is_repeated_alone(timed: Timed, monkeypatch: pytest.MonkeyPatch) -> None:
    """Time and evaluator stay; jobs soon after are not repeated."""
    now = [1000.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    timed.results = [1.0, SLOW_HOST, (1.0, 1.0), SLOW_HOST, SLOW_HOST, SLOW_HOST]
    assert timed.evaluate().speedup == 1.0
    assert timed.asked[1:] == [("evaluate", 0, 1.0), ("evaluate", 0, 1.0, "alone")]
    assert timed.evaluate().speedup == 0.1
    now[0] += 61
    assert timed.evaluate().speedup == 0.1  # slow again
    assert timed.asked[-1] == ("evaluate", 0, 1.0, "alone")
    assert timed.results == []
    assert timed.evaluator.end.call_count == 0


def test_clearly_slower_candidate_is_not_repeated(timed: Timed) -> None:
    timed.results = [1.0, (0.1, 0.1, {"baseline_slowed": True, "stopped_early": True})]
    assert timed.evaluate().speedup == 0.1


@pytest.mark.parametrize("run", [(1.0, 9.0), SLOW_HOST])
def test_rejected_candidate_is_not_repeated(timed: Timed, run: Any) -> None:
    wrong = TimedOutputWrong(round=0, call=None, wrong=1, total=2, largest=1.0)
    changes = dict(*run[2:]) | {"observations": (wrong,)}
    timed.results = [1.0, (run[0], run[1], changes)]
    assert timed.evaluate().status is Status.INTEGRITY


def test_baseline_slowed_twice_counts_as_before(timed: Timed) -> None:
    timed.results = [1.0, (1.0, 9.0), 1.1, (1.1, 9.0)]
    assert timed.evaluate().speedup == 1.1
    assert timed.evaluator.end.call_count == 2


@pytest.mark.parametrize("failures", [[FAILED], [DIED, DIED], [2.0, DIED, DIED]])
def test_first_run_counts_if_the_repetition_fails(timed: Timed, failures: list[Any]) -> None:
    timed.results = [1.0, (1.0, 9.0), *failures]
    assert timed.evaluate().speedup == 1.0
    assert timed.results == []
    assert timed.slot.stage_seconds == {"timing": 1.0 + 2.0}  # of the clean time and the first run


def test_reference_that_dies_alone_is_no_crash(timed: Timed) -> None:
    timed.results = [DIED, DIED]
    with pytest.raises(ProblemError, match="died twice, also without a candidate"):
        timed.evaluate()


def test_lost_repetition_measures_nothing_beside_others(timed: Timed) -> None:
    """A candidate may end itself where it finds itself alone."""
    timed.results = [1.0, (1.0, 9.0), 1.1, GONE, (1.1, 9.0)]
    assert timed.evaluate().speedup == 1.1
    assert timed.asked[-2:] == [("evaluate", 0, 1.1, "alone"), ("evaluate", 0, 1.1)]


def test_known_time_stays_without_another(timed: Timed) -> None:
    timed.results = [1.0, (1.0, 9.0), BaselineTimed(ms=None), (1.0, 9.0)]
    assert timed.evaluate().speedup == 1.0
    assert timed.asked[-1] == ("evaluate", 0, 1.0, "alone")


def test_recorded_baseline_may_stay_slow(timed: Timed) -> None:
    timed.results = [1.0, (1.0, 9.0)]
    assert timed.evaluate(recorded_ms=3.0).status is Status.PASSED
    assert timed.evaluator.end.call_count == 0


def test_clean_times_of_workloads_are_measured_together(timed: Timed) -> None:
    timed.workloads = 3
    timed.results = [1.0, 2.0, 3.0, (1.0, 1.0), (2.0, 2.0), (3.0, 3.0)]
    assert timed.evaluate().correct
    assert timed.asked == [
        *(("baseline", number, None, "untouched") for number in range(3)),
        *(("evaluate", number, number + 1.0) for number in range(3)),
    ]
    assert [spent["reference"] for spent in timed.spent] == [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]


@pytest.mark.parametrize("failure", [FAILED, DIED])
def test_later_baseline_that_fails_waits_for_its_turn(timed: Timed, failure: Any) -> None:
    timed.workloads = 3
    timed.results = [1.0, 2.0, failure, (1.0, 1.0), (2.0, 2.0), failure, failure]
    with pytest.raises(ProblemError, match=r"fails|died"):
        timed.evaluate()
    asked = [("baseline", 2, None, "untouched"), ("evaluate", 0, 1.0), ("evaluate", 1, 2.0)]
    assert timed.asked[2:6] == [*asked, ("baseline", 2, None, "untouched")]


def test_profile_is_retried_after_a_process_died(timed: Timed) -> None:
    timed.results = [GONE, ProfileResult(ending=Passed())]
    assert timed.slot.profile(REQUEST, threading.Event()).status == "passed"
