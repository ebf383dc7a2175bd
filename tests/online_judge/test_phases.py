"""What an evaluation holds while it tunes, checks and times a candidate."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from adaexplore.core.wire import EvaluationRequest
from online_judge.evaluator import job as candidate_job
from online_judge.evaluator.dialogue import CandidateFailed
from online_judge.evaluator.evaluation import Evaluation
from online_judge.evaluator.job import CandidateJob
from online_judge.evaluator.reference import ReferenceFailed, Seeds
from online_judge.protocol.endings import OtherWeights
from online_judge.protocol.measurement import CleanMs, Pace

GB = 10**9
CALL, KEPT, TOTAL = 5 * GB, 1 * GB, 80 * GB
PACE = Pace(0.1, 0.2, 0.003)


class Events(list[str]):
    """What happens, in order; leases are taken and returned."""

    @contextlib.contextmanager
    def lease(self, name: str) -> Iterator[Any]:
        self.append(f"take {name}")
        try:
            yield SimpleNamespace(quiet=False)
        finally:
            self.append(f"return {name}")

    def memory(self, share: float) -> contextlib.AbstractContextManager[Any]:
        return self.lease(f"{share * 0.6 * TOTAL / GB:.0f} GB")

    def hold(self, *, exclusive: bool) -> contextlib.AbstractContextManager[Any]:
        return self.lease("exclusive" if exclusive else "shared")

    def stopped(self) -> contextlib.AbstractContextManager[Any]:
        return self.lease("stopped")

    def timing_memory(self) -> contextlib.AbstractContextManager[Any]:
        return self.lease("timing memory")


class Phased(Evaluation):
    """Notes its phases instead of working; the checks fail if told so."""

    events: Events
    fails = False

    def _compile_baseline(self) -> None:
        self.events.append("compile")

    def _measure_clean(self) -> None:
        self.events.append("baseline")

    def _load(self) -> bool:
        self.events.append("tune")
        return False

    def _checked(self, changed: bool) -> Any:
        self.events.append("check")
        if self.fails:
            raise CandidateFailed(OtherWeights())
        return SimpleNamespace(expected=SimpleNamespace(leaves=[]), strides=())

    def _require_tier(self, outputs: Any) -> None:
        """Accept any."""

    def _measure(self, expected: Any, strides: Any) -> Any:
        self.events.append("time")

    def _try_without_kernels(self) -> None:
        self.events.append("without kernels")


@pytest.fixture
def evaluation(monkeypatch: pytest.MonkeyPatch) -> Phased:
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda index: SimpleNamespace(total_memory=TOTAL)
    )
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    reference = SimpleNamespace(cuda=True, tolerance=None, shapes_vary=False)
    problem: Any = SimpleNamespace(reference=reference, call_bytes=CALL, kept_bytes=KEPT, clean_ms={})
    job: Any = SimpleNamespace(
        request=EvaluationRequest(measure_performance=True, custom_model_src="x"), name="job", alone=False
    )
    events, dialogue = Events(), SimpleNamespace(clock=lambda whose, stage: None)
    stopwatch = SimpleNamespace(pace=lambda: PACE)
    parts: Any = (dialogue, problem, job, SimpleNamespace(), events, lambda: stopwatch)
    made = Phased(*parts)
    made.events = events
    return made


def test_each_phase_holds_the_memory_that_it_needs(evaluation: Phased) -> None:
    evaluation.run()
    assert evaluation.events == [
        "take 24 GB", "baseline", "return 24 GB",  # 12 and four calls' inputs and outputs, less a tenth
        "take 12 GB", "tune", "return 12 GB",
        "take 22 GB", "take shared", "check", "return shared", "return 22 GB",
        "take 24 GB", "time", "take shared", "without kernels", "return shared",
    ]  # fmt: skip
    evaluation.events.clear()
    evaluation._kept.close()  # the candidate process is gone
    assert evaluation.events == ["return 24 GB"]


def test_a_baseline_is_timed_alone_once(evaluation: Phased) -> None:
    evaluation._problem.clean_ms = {"eager": CleanMs(1.0, 1.0, PACE)}
    evaluation.run()
    assert evaluation.events[:3] == ["take 12 GB", "tune", "return 12 GB"]


def test_small_timing_takes_only_its_share(evaluation: Phased) -> None:
    evaluation._problem.call_bytes = 2 * GB
    evaluation.run()
    assert evaluation.events[:2] == ["take 6 GB", "baseline"]


def test_compiling_has_memory_of_its_own(evaluation: Phased) -> None:
    evaluation._request = evaluation._request.model_copy(update={"baseline": "compile"})
    evaluation.run()
    assert evaluation.events[:6] == [
        "take 12 GB", "compile", "return 12 GB",
        "take 24 GB", "baseline", "return 24 GB",
    ]  # fmt: skip
    evaluation.events.clear()
    evaluation._problem.clean_ms = {"compile": CleanMs(1.0, 1.0, PACE)}  # measured by another process
    evaluation.run()
    assert evaluation.events[:4] == ["take 12 GB", "compile", "return 12 GB", "take 12 GB"]


def test_failed_checks_return_their_memory(evaluation: Phased) -> None:
    evaluation.fails = True
    evaluation.run()
    assert evaluation.events[-4:] == ["take shared", "check", "return shared", "return 22 GB"]


def test_outputs_of_changing_shapes_are_not_timed(evaluation: Phased) -> None:
    evaluation._reference.shapes_vary = True
    with pytest.raises(ReferenceFailed, match=r"depend on the values of inputs.*measure_performance: false"):
        evaluation.run()
    assert "time" not in evaluation.events


def test_job_alone_waits_for_no_memory(evaluation: Phased) -> None:
    evaluation._job.alone = True
    evaluation.run()
    assert not any("GB" in event for event in evaluation.events)
    assert evaluation.events[:2] == ["take timing memory", "take exclusive"]


def test_huge_calls_wait_for_all_memory(evaluation: Phased) -> None:
    evaluation._problem.call_bytes = 60 * GB
    evaluation.run()
    assert evaluation.events.count("take 48 GB") == 4


def test_compiling_holds_no_memory_for_timing(evaluation: Phased, monkeypatch: pytest.MonkeyPatch) -> None:
    events = evaluation.events
    setup = SimpleNamespace(fastest_ms=1.0, alone_ms=lambda: events.append("time") or 1.0, free=lambda: None)
    monkeypatch.setattr(candidate_job, "TimingSetup", lambda *args, **kwargs: setup)
    evaluation._reference.seeds = Seeds(b"key")
    evaluation._reference.inputs = evaluation._reference.outputs = lambda *names: SimpleNamespace(leaves=())
    evaluation._problem.timed_call = lambda kind: events.append("compile")
    CandidateJob._compile_baseline(evaluation)
    CandidateJob._measure_clean(evaluation)
    assert events == [
        "take shared", "compile", "return shared",
        "take timing memory", "take shared", "compile", "return shared",
        "take exclusive", "time", "return exclusive", "return timing memory",
    ]  # fmt: skip


def test_first_call_of_a_problem_has_memory(evaluation: Phased) -> None:
    def measure() -> None:
        evaluation.events.append("measure")
        evaluation._problem.call_bytes = CALL

    evaluation._problem.call_bytes = 0
    evaluation._problem.measure_memory = measure
    evaluation.run()
    assert evaluation.events[:7] == [
        "take 19 GB", "take shared", "measure", "return shared", "return 19 GB",
        "take 24 GB", "baseline",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("now", "quiet", "counts"),
    [
        (PACE, True, 1.0),  # the candidate slowed the reference for good, as by taking its memory
        (Pace(0.1, 0.4, 0.003), True, 2.0),  # so did the GPU's clock
        (Pace(0.1, 0.2, 0.036), True, 9.9),  # the host is slow
        (PACE, False, None),
    ],
)
def test_slowed_baseline_counts_with_the_machines_slowdown(
    evaluation: Phased, now: Pace, quiet: bool, counts: float | None
) -> None:
    evaluation._problem.clean_ms = {"eager": CleanMs(1.0, 1.0, PACE)}
    stopwatch: Any = SimpleNamespace(wait_for_quiet=lambda: quiet, pace=lambda: now)
    setup: Any = SimpleNamespace(alone_ms=lambda flushes: 9.9)
    outcome: Any = SimpleNamespace(reference=SimpleNamespace(gpu_ms=10.0), flushes=1)
    assert evaluation._alone_ms(setup, outcome, stopwatch) == counts
    assert evaluation.events == ["take stopped", "return stopped"]
