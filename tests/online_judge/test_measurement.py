"""Turn an interleaved timing into the numbers of a verdict, without a GPU."""

import json
import random
from collections.abc import Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from adaexplore.core.judging.flags import Flag
from adaexplore.core.verdict import Status, Verdict
from adaexplore.core.wire import EvaluationRequest, Tier
from online_judge.checks.check import Observation
from online_judge.checks.facts.endings import Passed, ProcessEnd
from online_judge.checks.facts.kernels import KernelShare
from online_judge.checks.timing.throttling import GpuState
from online_judge.checks.timing.timed_outputs import TimedOutputWrong
from online_judge.common.timing import Block
from online_judge.cpu import simulated_cuda
from online_judge.evaluator.costs import Cost
from online_judge.evaluator.leases import Hold
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, Seeds
from online_judge.evaluator.timing import measurement
from online_judge.evaluator.timing.clock_check import Observed
from online_judge.evaluator.timing.interleaved import Outcome, Side
from online_judge.evaluator.timing.measurement import measured
from online_judge.protocol.measurement import CleanMs, Timing
from online_judge.protocol.orders import Block as BlockOrder
from online_judge.protocol.result import EvaluationResult
from online_judge.verdict import assemble, runtime
from online_judge.verdict.assemble import Target
from tests.verdicts import stats_of

from .sources import REFERENCE

CALLS, ROUNDS = 50, 6
GAP_MS, OPEN_MS, COPY_MS = 0.1, 0.2, 0.002
GPU = Target("NVIDIA H200", "cuda:0", cuda=True)
FACTS = {"hardware": "NVIDIA H200", "device": "cuda:0"}


def side(
    call_ms: float,
    *,
    slow_rounds: int = 0,
    wall_ms: float | None = None,
    hidden_ms: float = 0.0,
    graph_ms: float | None = None,
    tail_ms: float = 0.01,
) -> Side:
    """Blocks whose calls take this long by their events, and really ``hidden_ms`` more.

    In the first ``slow_rounds`` they take twice as long.
    """
    made = Side()
    rng = random.Random(str(call_ms))
    for number in range(ROUNDS):
        starts, ends, now = [], [], 0.0
        for _ in range(CALLS):
            starts.append(now)
            ends.append(now + call_ms * rng.gauss(1, 0.002) * (2 if number < slow_rounds else 1))
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
        result = EvaluationResult(ending=Passed(), timing=self._received)
        end = ProcessEnd("/job", "with exit code 0", "")
        return list(assemble.evaluated(self.request, GPU, result, end).flags)

    @property
    def stats(self) -> dict[str, Any]:
        return stats_of(self._verdict)

    @property
    def runtime_ms(self) -> float:
        assert self._verdict.runtime_ms is not None
        return self._verdict.runtime_ms

    @property
    def _verdict(self) -> Verdict:
        timing = runtime.statistics(self._received, self.request, None, **FACTS)
        return Verdict(status=Status.PASSED, timing=timing)

    @property
    def _received(self) -> Timing:
        received = Timing.from_json(json.loads(json.dumps(self.timing.to_json())))
        assert received == self.timing
        return received


class Priced(Problem):
    """A problem with a given cost of a call."""

    price = Cost(output_bytes=512, read_bytes=1600, flops=4096.0, depth=16.0)

    @property
    def cost(self) -> Cost:
        return self.price


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Numbers of a race between a side and a reference that takes 0.3 ms."""
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda index: SimpleNamespace())
    problem = Priced(Reference(REFERENCE, Seeds(b"key"), "fp32", cuda=False))

    def run(
        candidate: Side,
        clean_ms: float | None = 0.3,
        alone_ms: float | None = None,
        covered_ms: float | None = None,
        flushes: int = 0,
        reference: Side | None = None,
        cost: Cost | None = None,
        tier: Tier = "strict",
        quiet: bool = True,
        seeded: bool = False,
        found: Sequence[Observation] = (),
        **changes: Any,
    ) -> Measured:
        request = EvaluationRequest(measure_performance=True, tier=tier)
        if cost is not None:
            problem.price = cost
        options: dict[str, Any] = {
            "recorded_ms": None,
            "clean": None
            if clean_ms is None
            else CleanMs(clean_ms, 1.0, clean_ms if covered_ms is None else covered_ms),
            "extra_ms": 0.0,
            "states": (None, None),
            "hardware": FACTS["hardware"],
        }
        ours = side(0.3) if reference is None else reference
        outcome = Outcome(
            candidate,
            ours,
            list(found),
            COPY_MS,
            quiet=quiet,
            alone_ms=alone_ms,
            flushes=flushes,
            seeded=seeded,
        )
        hold = Hold(exclusive=True, waited_s=0.5, held_s=1.5)
        return Measured(measured(outcome, hold, problem, request, **options | changes), request)

    return run


def observed(result: Measured) -> list[str]:
    return [type(each).__name__ for each in result.timing.observations]


def ids(result: Measured) -> list[str]:
    return [flag.id for flag in result.flags]


def test_speedup_is_ratio_of_medians_with_interval(judge: Any) -> None:
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
    assert "forward_gpu_ms" not in stats


def test_forward_time_is_reported_too(judge: Any) -> None:
    candidate = side(0.1)
    candidate.forwards = [call / 4 for call in candidate.samples]
    stats = judge(candidate).stats
    assert stats["forward_gpu_ms"] == pytest.approx(0.025, rel=1e-2)
    assert stats["gpu_ms"] == pytest.approx(0.1, rel=1e-2)
    assert "baseline_forward_gpu_ms" not in stats


def test_recorded_baseline_replaces_the_measured_one(judge: Any) -> None:
    stats = judge(side(0.1), recorded_ms=0.5).stats
    assert (stats["baseline_type"], stats["baseline_time"]) == ("recorded", 0.5)
    assert stats["fast_p"] == pytest.approx(5.0, rel=1e-2)
    assert 4.9 < stats["ci_low"] <= stats["fast_p"] <= stats["ci_high"] < 5.1
    assert stats["baseline_gpu_ms"] == pytest.approx(0.3, rel=1e-2)


def test_reference_slowed_by_candidate_counts_its_clean_time(judge: Any) -> None:
    slowed = judge(side(0.1), clean_ms=0.2)
    assert ids(slowed) == ["baseline_drift"]
    assert slowed.stats["baseline_time"] == 0.2
    sped_up = judge(side(0.1), clean_ms=0.4)
    assert ids(sped_up) == ["baseline_drift"]
    assert sped_up.stats["baseline_time"] == pytest.approx(0.3, rel=1e-2)
    assert ids(judge(side(0.1), clean_ms=0.295)) == []


def test_reference_slow_without_candidate_counts_as_measured(judge: Any) -> None:
    """The host became slower: the candidate's time has grown as well."""
    found = judge(side(0.1), clean_ms=0.26, alone_ms=0.29)
    assert found.stats["baseline_time"] == pytest.approx(0.3, rel=1e-2)
    assert ids(found) == ["baseline_drift"]
    assert "0.26 ms alone before, 0.29 ms after it" in found.flags[0].evidence
    assert judge(side(0.1), clean_ms=0.2, alone_ms=0.21).stats["baseline_time"] == 0.21


def test_reference_that_stays_slow_counts_as_before(judge: Any) -> None:
    found = judge(side(0.1), clean_ms=0.2, alone_ms=0.29)
    assert found.stats["baseline_time"] == pytest.approx(0.2)
    assert "0.2 ms alone before, 0.29 ms after it; 0.2 ms count" in found.flags[0].evidence
    assert (found.timing.baseline_stays_slow, found.timing.baseline_slowed) == (True, False)
    once = judge(side(0.1), clean_ms=0.26, alone_ms=0.29).timing
    assert (once.baseline_stays_slow, once.baseline_slowed) == (False, False)


def test_time_without_candidate_is_of_equal_flushes(judge: Any) -> None:
    """Launches were hidden from the reference alone if they were hidden beside the candidate."""
    visible = judge(side(0.1), clean_ms=0.3, covered_ms=0.1)
    assert (ids(visible), visible.stats["baseline_clean_ms"]) == ([], 0.3)
    hidden = judge(side(0.1), clean_ms=0.3, covered_ms=0.1, flushes=2)
    assert (ids(hidden), hidden.stats["baseline_clean_ms"]) == (["baseline_drift"], 0.1)
    assert hidden.stats["baseline_time"] == 0.1


def test_slow_host_rounds_do_not_penalize_the_candidate(judge: Any) -> None:
    slow = {"clean_ms": 0.3, "alone_ms": 0.3}
    both = judge(side(0.1, slow_rounds=3), reference=side(0.3, slow_rounds=3), **slow)
    assert both.stats["baseline_gpu_ms"] == pytest.approx(0.45, rel=0.05)
    assert both.stats["fast_p"] == pytest.approx(3.0, rel=1e-2)
    sabotaged = judge(side(0.1), reference=side(0.3, slow_rounds=3), **slow)
    assert sabotaged.stats["fast_p"] == pytest.approx(3.0, rel=1e-2)
    always = judge(side(0.1), reference=side(0.3, slow_rounds=ROUNDS), **slow)
    assert always.stats["baseline_time"] == 0.3
    assert [each.timing.baseline_slowed for each in (both, sabotaged, always)] == [False, False, True]


def test_unknown_time_without_the_candidate_is_noted(judge: Any) -> None:
    found = judge(side(0.1), clean_ms=None)
    assert ids(found) == ["baseline_unconfirmed"]
    assert found.stats["baseline_time"] == pytest.approx(0.3, rel=1e-2)
    assert ids(judge(side(0.1), clean_ms=None, recorded_ms=0.5)) == []


def test_replay_finds_work_hidden_from_events(judge: Any) -> None:
    result = judge(side(0.01, hidden_ms=0.2, graph_ms=0.21 + COPY_MS))
    assert ids(result) == ["clock_mismatch"]
    assert result.stats["score_ms"] == pytest.approx(0.21, rel=1e-2)


def test_replay_on_a_busy_gpu_is_no_proof(judge: Any) -> None:
    result = judge(side(0.01, hidden_ms=0.2, graph_ms=0.21 + COPY_MS), quiet=False)
    assert ids(result) == ["launch_bound"]
    assert result.stats["score_ms"] == pytest.approx(0.21, rel=1e-2)


def test_what_a_slow_host_adds_is_no_proof(judge: Any) -> None:
    of_the_host = 2.0 / CALLS  # messages and the launch of the graph, once a block
    slowed = judge(side(0.04, wall_ms=0.2, graph_ms=0.04 + COPY_MS + of_the_host))
    assert ids(slowed) == ["launch_bound"]
    assert slowed.stats["score_ms"] == pytest.approx(0.08, rel=1e-2)
    hidden = judge(side(0.04, wall_ms=0.2, graph_ms=0.04 + COPY_MS + 2 * of_the_host))
    assert ids(hidden) == ["clock_mismatch"]
    assert hidden.stats["score_ms"] == pytest.approx(0.12, rel=1e-2)


def test_fastest_replay_counts(judge: Any) -> None:
    disturbed = side(0.01, wall_ms=0.2, graph_ms=0.01 + COPY_MS)
    disturbed.graph[0] = 9.0
    assert ids(judge(disturbed)) == ["launch_bound"]


def test_score_is_no_less_than_gpu_time(judge: Any) -> None:
    result = judge(side(0.1, hidden_ms=0.2, wall_ms=0.02))
    assert result.stats["score_ms"] == result.stats["gpu_ms"] == pytest.approx(0.1, rel=1e-2)


def test_observations_of_the_timing_are_kept(judge: Any) -> None:
    wrong = TimedOutputWrong(round=1, call=2, wrong=3, total=4, largest=5.0)
    assert ids(judge(side(0.1), found=[wrong])) == ["timed_output_wrong"]


def test_clocks_that_went_down_are_noted(judge: Any) -> None:
    before = GpuState(sm_mhz=1980, memory_mhz=3201, temperature_c=40, power_w=500.0, reasons=0, processes=1)
    after = GpuState(sm_mhz=1200, memory_mhz=3201, temperature_c=40, power_w=500.0, reasons=0, processes=1)
    result = judge(side(0.1), states=(before, after))
    assert ids(result) == ["throttled"]
    assert result.stats["clocks"] == {"before": before.to_json(), "after": after.to_json()}


def test_kernels_of_the_profile_are_reported(judge: Any) -> None:
    share = KernelShare(own=0.5, total_ms=0.1, streams=1, kernels=())
    result = judge(side(0.1))
    assert runtime.statistics(result.timing, result.request, share, **FACTS).kernels == share.to_json()


def test_bound_is_that_of_the_required_precision(judge: Any) -> None:
    product = Cost(output_bytes=512, read_bytes=0, flops=30e9, depth=16.0)  # in 0.1 ms: 300 TFLOP/s
    assert ids(judge(side(0.1), cost=product)) == ["below_soft_bound"]
    assert ids(judge(side(0.1), cost=product, tier="half")) == []


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


def with_a_long_call(made: Side, long_ms: float = 10.0) -> Side:
    """Let the first call of each block take so long: with 10 ms the mean is 0.21 ms."""
    for round_ in made.calls:
        round_[0] = long_ms
    return made


def test_score_uses_mean_when_calls_are_batched(judge: Any) -> None:
    for replayed in (None, 0.21 + COPY_MS, 0.1, 0.01):
        result = judge(with_a_long_call(side(0.01, graph_ms=replayed)))
        assert result.stats["score_ms"] == pytest.approx(0.21, rel=0.05)
        assert ids(result) == ["launch_bound"]
        assert "0.01 ms is the median" in result.flags[0].evidence


def test_replay_bounds_what_a_slow_host_costs(judge: Any) -> None:
    slow: dict[str, Any] = {"wall_ms": 0.9}
    assert judge(with_a_long_call(side(0.01, **slow))).stats["score_ms"] == pytest.approx(0.9 - COPY_MS)
    result = judge(with_a_long_call(side(0.01, graph_ms=0.3, **slow)))
    assert result.stats["score_ms"] == pytest.approx(0.3)
    assert ids(result) == ["launch_bound"]


def test_uneven_claims_do_not_replace_the_wall_time(judge: Any) -> None:
    forged = with_a_long_call(side(0.01, hidden_ms=0.9, graph_ms=0.5))
    result = judge(forged)
    assert result.stats["score_ms"] == pytest.approx(0.91, rel=0.01)
    assert ids(result) == ["clock_mismatch", "launch_bound"]


@pytest.mark.parametrize(
    ("graph_ms", "single_ms", "counted_ms"),
    [
        (0.012, 0.0099, 0.012),  # the host was slow
        (0.009, 0.0099, 0.01),
        (0.012, 0.02, 0.21),
        (0.03, 0.0099, 0.21),
        (None, 0.0099, 0.21),
    ],
)
def test_replay_and_calls_alone_explain_slow_calls(
    judge: Any, graph_ms: float | None, single_ms: float, counted_ms: float
) -> None:
    replayed = None if graph_ms is None else graph_ms + COPY_MS
    slowed, reference = with_a_long_call(side(0.01, graph_ms=replayed)), side(0.3)
    for each, ms in ((slowed, single_ms), (reference, 0.3)):
        each.single.append(Observed(ms + OPEN_MS, Block((0.0,), (ms,), 0.01)))
    result = judge(slowed, reference=reference)
    assert result.stats["score_ms"] == pytest.approx(counted_ms, rel=0.05)
    assert ids(result) == ["launch_bound"]


@pytest.mark.parametrize(
    ("single_ms", "hidden_ms", "counted_ms", "found"),
    [
        ([], 0.0, 0.21, ["UnevenCalls"]),
        ([0.5, 0.25], 0.0, 0.21, ["UnevenCalls"]),
        ([0.5, 0.4], 0.0, 0.4, ["UnevenCalls", "CallsDoneTogether"]),
        ([0.2], 0.5, 0.21, ["UnevenCalls"]),  # within the margins of the clocks
        ([0.2], 3.0, 3.2, ["UnevenCalls", "CallsDoneTogether"]),
    ],
)
def test_calls_alone_count_if_much_longer(
    judge: Any, single_ms: list[float], hidden_ms: float, counted_ms: float, found: list[str]
) -> None:
    together = with_a_long_call(side(0.01))
    block = [Block((0.0,), (call_ms,), 0.01) for call_ms in single_ms]
    together.single += [Observed(each.span + OPEN_MS + hidden_ms, each) for each in block]
    reference = side(0.3)
    reference.single += [Observed(0.3 + OPEN_MS, Block((0.0,), (0.3,), 0.01))]
    result = judge(together, reference=reference)
    assert result.stats["score_ms"] == pytest.approx(counted_ms, rel=0.05)
    assert observed(result) == found
    shown = pytest.approx(counted_ms) if len(found) > 1 else min(single_ms, default=None)
    assert result.stats["witness"]["single_ms"] == shown


@pytest.mark.parametrize(
    ("single_ms", "baseline_single_ms", "seeded", "counted_ms"),
    [
        (0.7, 0.6, True, 0.3),  # launches take longer alone, on both sides
        (0.9, 0.6, True, 0.57),
        (0.5, 0.2, True, 0.47),  # the reference's do not
        (1.5, 9.0, True, 0.9),  # the reference was slowed
        (0.7, 0.6, False, 0.7),
    ],
)
def test_seeded_calls_alone_compare_with_the_references(
    judge: Any, single_ms: float, baseline_single_ms: float, *, seeded: bool, counted_ms: float
) -> None:
    equal, reference = side(0.3), side(0.3)
    for each, ms in ((equal, single_ms), (reference, baseline_single_ms)):
        each.single.append(Observed(ms + OPEN_MS, Block((0.0,), (ms,), 0.01)))
    result = judge(equal, reference=reference, seeded=seeded)
    assert result.stats["score_ms"] == pytest.approx(counted_ms, rel=0.01)
    assert result.stats["witness"]["single_ms"] == single_ms


@pytest.mark.parametrize(
    ("long_ms", "baseline_long_ms", "seeded", "counted_ms"),
    [
        (0.5, 0.5, True, 0.01),
        (0.5, 0.01, True, 0.0198),
        (0.5, 0.5, False, 0.0198),
        (10.0, 10.0, True, 0.21),  # the reference was slowed
    ],
)
def test_seeded_calls_may_be_uneven_on_both_sides(
    judge: Any, long_ms: float, baseline_long_ms: float, *, seeded: bool, counted_ms: float
) -> None:
    slow_host, reference = (with_a_long_call(side(0.01), ms) for ms in (long_ms, baseline_long_ms))
    result = judge(slow_host, reference=reference, clean_ms=0.01, seeded=seeded)
    assert result.stats["score_ms"] == pytest.approx(counted_ms, rel=0.05)


@pytest.mark.parametrize(("extra_ms", "counted_ms"), [(0.0, 1.3), (1.0, 0.3)])
def test_strided_outputs_are_no_longer_calls_alone(judge: Any, extra_ms: float, counted_ms: float) -> None:
    candidate, reference = side(0.3), side(0.3)
    for each, wall_ms in ((candidate, 1.3), (reference, 0.3)):
        each.single.append(Observed(wall_ms + OPEN_MS, Block((0.0,), (0.3,), 0.01)))
    stats = judge(candidate, reference=reference, extra_ms=extra_ms).stats
    assert stats["score_ms"] == pytest.approx(counted_ms, rel=0.02)


def test_longer_of_events_and_replay_counts(judge: Any) -> None:
    tiny = side(0.0005, wall_ms=0.2, graph_ms=0.008 + COPY_MS)  # within the margins of the clocks
    result = judge(tiny)
    assert result.stats["score_ms"] == pytest.approx(0.008)
    assert ids(result) == ["launch_bound"]


def test_time_below_output_bandwidth_bound_is_flagged(judge: Any) -> None:
    huge = Cost(output_bytes=4 * 2**30, read_bytes=0, flops=0.0, depth=1.0)
    assert "below_bandwidth_bound" in ids(judge(side(0.1), cost=huge))


class CopyStopwatch:
    """Says that copying transposed outputs takes four times as long."""

    def block(self, call: Any, arguments: Any, places: Any, **options: Any) -> "CopyStopwatch":
        self._call_ms = 0.5 if arguments[0][0].is_contiguous() else 2.0
        return self

    def go(self) -> None:
        pass

    def times(self) -> Block:
        return Block((0.0,), (self._call_ms,), 0.0)


def test_copy_cost_uses_strides_of_both_sides() -> None:
    plain, turned = (torch.empty_strided((4, 8), strides, device="meta") for strides in ((8, 1), (1, 4)))
    stopwatch: Any = CopyStopwatch()

    def extra_ms(expected: list[Any], *strides: tuple[int, ...]) -> float:
        with simulated_cuda("sm_90"):
            return measurement.copy_extra_ms(expected, strides, stopwatch)

    assert extra_ms([plain], (8, 1)) == 0.0
    assert extra_ms([plain], (1, 4)) == 1.5
    assert extra_ms([turned], (1, 4)) == 0.0
    assert extra_ms([turned], (8, 1)) == -1.5
    assert extra_ms([plain, turned], (1, 4), (8, 1)) == 0.0
