"""From what a race found to the numbers of a verdict, without a GPU."""

import json
import random
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from adaexplore.core.wire import EvaluationRequest
from online_judge.common.timing import Block
from online_judge.evaluator.costs import Cost
from online_judge.evaluator.leases import Hold
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, Seeds
from online_judge.evaluator.timing import measurement
from online_judge.evaluator.timing.clock_check import Observed
from online_judge.evaluator.timing.interleaved import Outcome, Side
from online_judge.evaluator.timing.measurement import measured
from online_judge.protocol.measurement import Timing
from online_judge.protocol.orders import Block as BlockOrder
from online_judge.verdict import runtime
from online_judge.verdict.flags import Flag

from .sources import REFERENCE

CALLS, ROUNDS = 50, 6
GAP_MS, OPEN_MS, COPY_MS = 0.1, 0.2, 0.002
FACTS = {"hardware": "NVIDIA H200", "device": "cuda:0"}


def side(
    call_ms: float,
    *,
    wall_ms: float | None = None,
    hidden_ms: float = 0.0,
    graph_ms: float | None = None,
    tail_ms: float = 0.01,
) -> Side:
    """Blocks whose calls take so long by their events, and in truth ``hidden_ms`` more."""
    made = Side()
    rng = random.Random(str(call_ms))
    for _ in range(ROUNDS):
        starts, ends, now = [], [], 0.0
        for _ in range(CALLS):
            starts.append(now)
            ends.append(now + call_ms * rng.gauss(1, 0.002))
            now = ends[-1] + GAP_MS
        block = Block(tuple(starts), tuple(ends), tail_ms)
        made.add(Observed(block.span + OPEN_MS + hidden_ms * CALLS, block), BlockOrder(CALLS))
    plain_ms = call_ms + hidden_ms + COPY_MS if wall_ms is None else wall_ms
    for _ in range(3):
        made.add(Observed(plain_ms * CALLS, Block((), (), 0.0)), BlockOrder(CALLS, kind="plain"))
        if graph_ms is not None:
            made.add(Observed(graph_ms * CALLS, Block((), (), 0.0)), BlockOrder(CALLS, kind="graph"))
    return made


@dataclass
class Measured:
    """What a verdict says of a timing, after the timing went over a process border."""

    timing: Timing
    request: EvaluationRequest

    @property
    def flags(self) -> list[Flag]:
        return runtime.flags_of(self._received, self.request, "/job")

    @property
    def stats(self) -> dict[str, Any]:
        return runtime.statistics(self._received, self.request, None, **FACTS)

    @property
    def runtime_ms(self) -> float:
        return runtime.milliseconds(self._received)

    @property
    def _received(self) -> Timing:
        received = Timing.from_json(json.loads(json.dumps(self.timing.to_json())))
        assert received == self.timing
        return received


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Numbers of a race between a side and a reference that takes 0.3 ms."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace())
    problem = Problem(Reference(REFERENCE, "key", Seeds(b"key"), "fp32", cuda=False))
    problem._cost = Cost(output_bytes=512, read_bytes=1600, flops=4096.0, depth=16.0)

    def run(
        candidate: Side,
        clean_ms: float | None = None,
        alone_ms: float | None = None,
        cost: Cost | None = None,
        **changes: Any,
    ) -> Measured:
        request = EvaluationRequest(measure_performance=True)
        if clean_ms is not None:
            problem._clean_ms[request.tf32, request.baseline] = clean_ms
        if cost is not None:
            problem._cost = cost
        options: dict[str, Any] = {
            "recorded_ms": None,
            "extra_ms": 0.0,
            "states": (None, None),
            "hardware": FACTS["hardware"],
        }
        outcome = Outcome(candidate, side(0.3), copy_ms=COPY_MS, alone_ms=alone_ms)
        hold = Hold(exclusive=True, waited_s=0.5, held_s=1.5)
        return Measured(measured(outcome, hold, problem, request, **options | changes), request)

    return run


def ids(result: Measured) -> list[str]:
    return [flag.id for flag in result.flags]


def test_speedup_is_the_ratio_of_medians_with_its_interval(judge: Any) -> None:
    result = judge(side(0.1))
    stats = result.stats
    assert result.flags == []
    assert stats["fast_p"] == stats["baseline_time"] / stats["score_ms"] == pytest.approx(3.0, rel=1e-2)
    assert stats["ci_low"] <= stats["fast_p"] <= stats["ci_high"]
    assert stats["ci_high"] - stats["ci_low"] < 0.1
    assert stats["score_ms"] == stats["gpu_ms"] == pytest.approx(0.1, rel=1e-2)
    assert result.runtime_ms == stats["mean"]
    assert stats["num_trials"] == stats["baseline_trials"] == CALLS * ROUNDS
    assert (stats["rounds"], stats["baseline"], stats["baseline_type"]) == (ROUNDS, "eager", "measured")
    assert stats["slot"]["held_s"] == 1.5
    assert 0 < stats["slot"]["gpu_s"] < 1.5


def test_recorded_baseline_takes_the_place_of_the_measured_one(judge: Any) -> None:
    stats = judge(side(0.1), recorded_ms=0.5).stats
    assert (stats["baseline_type"], stats["baseline_time"]) == ("recorded", 0.5)
    assert stats["fast_p"] == pytest.approx(5.0, rel=1e-2)
    assert stats["ci_low"] <= stats["fast_p"] <= stats["ci_high"]
    assert stats["baseline_gpu_ms"] == pytest.approx(0.3, rel=1e-2)


def test_reference_that_is_slower_beside_the_candidate_counts_as_it_is_alone(judge: Any) -> None:
    slowed = judge(side(0.1), clean_ms=0.2)
    assert ids(slowed) == ["baseline_drift"]
    assert slowed.stats["baseline_time"] == 0.2
    sped_up = judge(side(0.1), clean_ms=0.4)
    assert ids(sped_up) == ["baseline_drift"]
    assert sped_up.stats["baseline_time"] == pytest.approx(0.3, rel=1e-2)
    assert ids(judge(side(0.1), clean_ms=0.295)) == []


def test_reference_that_is_as_slow_without_the_candidate_counts_as_it_is(judge: Any) -> None:
    """The host became slower: the candidate's time has grown as well."""
    found = judge(side(0.1), clean_ms=0.2, alone_ms=0.29)
    assert found.stats["baseline_time"] == pytest.approx(0.3, rel=1e-2)
    assert ids(found) == ["baseline_drift"]
    assert "0.2 ms alone before, 0.29 ms after it" in found.flags[0].evidence
    assert judge(side(0.1), clean_ms=0.2, alone_ms=0.21).stats["baseline_time"] == 0.21


def test_work_that_events_do_not_see_is_found_by_the_replay(judge: Any) -> None:
    result = judge(side(0.01, hidden_ms=0.2, graph_ms=0.21 + COPY_MS))
    assert ids(result) == ["clock_mismatch"]
    assert result.stats["score_ms"] == pytest.approx(0.21, rel=1e-2)


def test_host_that_is_slow_is_no_cheat(judge: Any) -> None:
    result = judge(side(0.01, wall_ms=0.2, graph_ms=0.01 + COPY_MS))
    assert ids(result) == ["launch_bound"]
    assert result.stats["score_ms"] == result.stats["gpu_ms"]
    assert result.stats["e2e_ms"] == pytest.approx(0.2)


def test_wall_counts_where_the_calls_cannot_be_captured(judge: Any) -> None:
    result = judge(side(0.01, wall_ms=0.2))
    assert ids(result) == ["launch_bound"]
    assert result.stats["score_ms"] == result.runtime_ms == pytest.approx(0.2 - COPY_MS)
    assert result.stats["fast_p"] < 2


def test_device_that_works_on_is_a_side_stream(judge: Any) -> None:
    assert "side_stream" in ids(judge(side(0.01, tail_ms=5.0)))


def test_copies_that_take_longer_are_allowed_for(judge: Any) -> None:
    slow_copies = side(0.01, hidden_ms=0.04)
    assert ids(judge(slow_copies, extra_ms=0.04)) == []
    assert ids(judge(slow_copies)) != []


def test_mean_counts_where_one_call_does_the_work_of_all(judge: Any) -> None:
    batched = side(0.01)
    for round_ in batched.calls:
        round_[0] = 10.0
    result = judge(batched)
    assert result.stats["score_ms"] == pytest.approx(0.21, rel=0.05)
    assert ids(result) == ["launch_bound"]


def test_faster_than_its_output_can_be_written_is_told(judge: Any) -> None:
    huge = Cost(output_bytes=4 * 2**30, read_bytes=0, flops=0.0, depth=1.0)
    assert "below_bandwidth_bound" in ids(judge(side(0.1), cost=huge))


def test_copies_are_measured_with_the_strides_of_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[tuple[int, ...]] = []

    def copy(source: Any, to: Any, stopwatch: Any) -> float:
        made.append(source.stride())
        return 0.5 if source.is_contiguous() else 2.0

    monkeypatch.setattr(measurement, "_copy_ms", copy)
    real = torch.empty_strided
    on_no_gpu = SimpleNamespace(
        empty=lambda shape, **options: None,
        empty_strided=lambda shape, strides, **options: real(shape, strides, device="meta"),
    )
    monkeypatch.setattr(measurement, "torch", on_no_gpu)
    plain, turned = real((4, 8), (8, 1), device="meta"), real((4, 8), (1, 4), device="meta")
    watch: Any = None
    assert measurement.copy_extra_ms([plain], [(8, 1)], watch) == 0.0
    assert measurement.copy_extra_ms([plain], [(1, 4)], watch) == 1.5
    assert measurement.copy_extra_ms([turned], [(1, 4)], watch) == 0.0
    assert measurement.copy_extra_ms([turned], [(8, 1)], watch) == -1.5
    assert measurement.copy_extra_ms([plain, turned], [(1, 4), (8, 1)], watch) == 0.0
