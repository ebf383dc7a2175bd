"""What an evaluation holds while it tunes, checks and times a candidate."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from adaexplore.core.wire import EvaluationRequest
from online_judge.checks.facts.endings import OtherWeights
from online_judge.evaluator.dialogue import CandidateFailed
from online_judge.evaluator.evaluation import Evaluation
from online_judge.evaluator.reference import ReferenceFailed, Seeds
from online_judge.evaluator.timing import clean_time
from online_judge.evaluator.timing.clean_time import CleanTiming
from online_judge.protocol.measurement import CleanMs

GB = 10**9
CLEAN = CleanMs(1.0, 0.5, 0.9)
CALL, KEPT, TOTAL = 5 * GB, 1 * GB, 80 * GB


class Events(list[str]):
    """What happens, in order; leases are taken and returned, and nobody's time runs when they are taken."""

    def __init__(self) -> None:
        super().__init__()
        self.clocks = ["reference"]
        self.quiet = False

    @contextlib.contextmanager
    def lease(self, name: str) -> Iterator[Any]:
        assert name == "stopped" or self.clocks[-1] == "none"
        self.append(f"take {name}")
        try:
            yield SimpleNamespace(quiet=self.quiet)
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

    def _load(self) -> bool:
        self.events.append("tune")
        return False

    def _check(self, changed: bool) -> Any:
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
    events = Events()
    reference = SimpleNamespace(
        cuda=True,
        tolerance=None,
        shapes_vary=False,
        is_compiled=lambda kind: kind == "eager",
        call=lambda kind: events.append(f"prepare {kind}"),
    )
    sizes = {"call_bytes": CALL, "kept_bytes": KEPT, "timed_bytes": CALL}
    problem: Any = SimpleNamespace(reference=reference, mask_unwritten=lambda: None, **sizes)
    job: Any = SimpleNamespace(
        request=EvaluationRequest(measure_performance=True, custom_model_src="x"),
        name="job",
        alone=False,
        clean_ms=CLEAN,
    )
    dialogue = SimpleNamespace(clock=lambda whose, stage: events.clocks.append(whose))
    parts: Any = (dialogue, problem, job, SimpleNamespace(), events, SimpleNamespace)
    made = Phased(*parts)
    made.events = events
    return made


def test_each_phase_holds_the_memory_that_it_needs(evaluation: Phased) -> None:
    evaluation.run()
    assert evaluation.events == [
        "take 12 GB", "tune", "return 12 GB",
        "take 22 GB", "take shared", "check", "return shared", "return 22 GB",
        "take 24 GB", "time",  # 12 and four calls' inputs and outputs, less a tenth
        "take shared", "without kernels", "return shared",
    ]  # fmt: skip
    evaluation.events.clear()
    evaluation._kept.close()  # the candidate process is gone
    assert evaluation.events == ["return 24 GB"]


def test_small_timing_takes_only_its_share(evaluation: Phased) -> None:
    evaluation._problem.timed_bytes = 2 * GB
    evaluation.run()
    assert evaluation.events[evaluation.events.index("time") - 1] == "take 12 GB"


def test_compiling_has_memory_of_its_own(evaluation: Phased) -> None:
    evaluation._request = evaluation._request.model_copy(update={"baseline": "compile"})
    evaluation.run()
    assert evaluation.events[:6] == [
        "take 12 GB", "take shared", "prepare compile", "return shared", "return 12 GB",
        "take 12 GB",
    ]  # fmt: skip


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
    assert evaluation.events.count("take 48 GB") == 3


@pytest.fixture
def timing(evaluation: Phased, monkeypatch: pytest.MonkeyPatch) -> CleanTiming:
    events, reference = evaluation.events, evaluation._reference
    setup = SimpleNamespace(clean_ms=lambda: events.append("time") or CLEAN, free=lambda: None)
    monkeypatch.setattr(clean_time, "TimingSetup", lambda *args, **kwargs: setup)
    reference.seeds = Seeds(b"key")
    reference.inputs = reference.outputs = lambda *names: SimpleNamespace(leaves=())
    parts: Any = (evaluation._clock, evaluation._problem, evaluation._job, events, SimpleNamespace)
    return CleanTiming(*parts)


@pytest.mark.parametrize("quiet", [False, True])
def test_clean_time_counts_if_it_was_quiet(evaluation: Phased, timing: CleanTiming, quiet: bool) -> None:
    evaluation.events.quiet = quiet
    assert timing.run().ms == (CLEAN if quiet else None)
    assert evaluation.events == [
        "take 24 GB", "take timing memory", "take shared", "prepare eager", "return shared",
        "take exclusive", "time", "return exclusive", "return timing memory", "return 24 GB",
    ]  # fmt: skip


def test_compiling_holds_no_memory_for_timing(evaluation: Phased, timing: CleanTiming) -> None:
    timing._request = timing._request.model_copy(update={"baseline": "compile"})
    timing.run()
    assert evaluation.events[:7] == [
        "take 12 GB", "take shared", "prepare compile", "return shared", "return 12 GB",
        "take 24 GB", "take timing memory",
    ]  # fmt: skip


def test_clean_time_alone_waits_for_no_memory(evaluation: Phased, timing: CleanTiming) -> None:
    evaluation._job.alone = True
    timing.run()
    assert not any("GB" in event for event in evaluation.events)
    assert evaluation.events[:2] == ["take timing memory", "take exclusive"]
    assert evaluation.events[-2:] == ["return exclusive", "return timing memory"]


def test_first_call_of_a_problem_has_memory(evaluation: Phased) -> None:
    def measure() -> None:
        evaluation.events.append("measure")
        evaluation._problem.call_bytes = CALL

    evaluation._problem.call_bytes = 0
    evaluation._problem.measure_memory = measure
    evaluation.run()
    assert evaluation.events[:7] == [
        "take 19 GB", "take shared", "measure", "return shared", "return 19 GB",
        "take 12 GB", "tune",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("times", "alone_ms"),
    [
        ([1.1], 1.1),  # as fast as before
        ([9.0, 1.1], 1.1),  # the host was slow for a moment
        ([9.0, 8.0, 8.5], 8.0),
    ],
)
def test_slow_baseline_is_timed_alone(evaluation: Phased, times: list[float], alone_ms: float) -> None:
    left = iter(times)
    assert evaluation._alone_ms(*timed_after_drift(evaluation, lambda flushes: next(left))) == alone_ms
    assert list(left) == []
    assert evaluation.events == ["take stopped", "return stopped"]


def timed_after_drift(
    evaluation: Phased, alone_ms: Any, *, quiet: bool = True, gpu_ms: float = 10.0, flushes: int = 1
) -> Any:
    """Return what times a baseline again that took 1 ms before and ``gpu_ms`` beside the candidate."""
    outcome = SimpleNamespace(reference=SimpleNamespace(gpu_ms=gpu_ms), flushes=flushes)
    return SimpleNamespace(alone_ms=alone_ms), outcome, SimpleNamespace(wait_for_quiet=lambda: quiet)


def test_baseline_is_not_timed_alone_without_need(evaluation: Phased) -> None:
    assert evaluation._alone_ms(*timed_after_drift(evaluation, None, gpu_ms=1.1)) is None
    assert evaluation.events == []
    hidden = timed_after_drift(evaluation, lambda flushes: 0.9, gpu_ms=1.1, flushes=2)
    assert evaluation._alone_ms(*hidden) == 0.9  # it took 0.9 ms before with launches hidden
    evaluation.events.clear()
    assert evaluation._alone_ms(*timed_after_drift(evaluation, None, quiet=False)) is None
