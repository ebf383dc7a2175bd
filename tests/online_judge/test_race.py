"""Interleaved timing without a GPU: a scripted candidate, CPU tensors and a clock that both sides move."""

import itertools
import json
import math
import random
import re
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from adaexplore.core.dialects.schema import Tolerance
from adaexplore.core.judging.flags import Flag
from online_judge.common import cuda_driver, modules
from online_judge.common.timing import Block, BlockRun, Stopwatch
from online_judge.common.trees import take_apart
from online_judge.cpu import simulated_cuda
from online_judge.evaluator import costs
from online_judge.evaluator.dialogue import CandidateGone
from online_judge.evaluator.problem import Problem
from online_judge.evaluator.reference import Reference, ReferenceFailed, Seeds
from online_judge.evaluator.timing import setup as timing_setup
from online_judge.evaluator.timing.clock_check import Observed
from online_judge.evaluator.timing.interleaved import (
    MAX_ROUNDS,
    MIN_ROUNDS,
    MIN_SAMPLES,
    InterleavedTiming,
    Outcome,
    Side,
)
from online_judge.evaluator.timing.setup import TimingSetup
from online_judge.protocol.measurement import CleanMs
from online_judge.protocol.orders import DONE, GO, Prepare
from online_judge.protocol.orders import Block as BlockOrder
from online_judge.protocol.shared_tensors import MappedTensors
from online_judge.verdict import flags as verdict_flags

from .scripted import scripted

GAP_MS, OPEN_MS = 0.05, 0.2
CORES = (5, 7)
READY = b'{"ready": true}'
TEMPLATE = """
import torch
import torch.nn as nn

class Model(nn.Module):
    def forward(self, x):
        {body}

def get_inputs():
    return [torch.randn({size})]

def get_init_inputs():
    return []
"""
RELU = TEMPLATE.format(body="return torch.relu(x)", size=1024)
ONES = TEMPLATE.format(body="return torch.ones_like(x)", size=1024)
DOUBLED = TEMPLATE.format(body="return x.mul_(2.0)", size=1024)
DROPOUT = TEMPLATE.format(body="return nn.functional.dropout(x, 0.5, True)", size=1024)
SIZE = 500_000
SPARSE = TEMPLATE.format(
    body=f"y = torch.zeros({SIZE})\n        y[(x.abs() * 1e6).long() % {SIZE}] = 1.0\n        return y",
    size=2,
)


@dataclass
class Clock:
    now_s: float = 0.0

    def wait(self, ms: float) -> None:
        self.now_s += ms / 1e3


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    made = Clock()
    monkeypatch.setattr(time, "perf_counter", lambda: made.now_s)
    return made


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Use one thread, because with few cores the threads of both sides wait for each other."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(autouse=True)
def driver_of_cpu_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    blocks: list[torch.Tensor] = []

    def allocate(nbytes: int) -> int:
        blocks.append(torch.zeros(nbytes, dtype=torch.uint8))
        return len(blocks)

    monkeypatch.setattr(cuda_driver, "allocate", allocate)
    monkeypatch.setattr(cuda_driver, "free", lambda address: None)
    monkeypatch.setattr(cuda_driver, "export", lambda address: bytes([address]))
    monkeypatch.setattr(cuda_driver, "open_exported", lambda handle: handle[0])
    monkeypatch.setattr(cuda_driver, "as_bytes", lambda address, nbytes: blocks[address - 1][:nbytes])


def times_of(calls_ms: Sequence[float]) -> Block:
    starts, ends, now = [], [], 0.0
    for call_ms in calls_ms:
        starts.append(now)
        ends.append(now + call_ms)
        now += call_ms + GAP_MS
    return Block(tuple(starts), tuple(ends), 0.0)


def wall_of(calls_ms: Sequence[float]) -> float:
    return sum(calls_ms) + GAP_MS * (len(calls_ms) - 1) + OPEN_MS


@dataclass(frozen=True)
class Mark:
    at_ms: float

    def elapsed_time(self, end: "Mark") -> float:
        return end.at_ms - self.at_ms


@dataclass
class FakeStopwatch:
    """Runs the reference; each call moves the clock by ``call_ms``."""

    clock: Clock
    call_ms: float
    meanwhile: Callable[[], None] = lambda: None
    flush_ms: float = 0.001
    times_alone = 1.0

    def wait_for_quiet(self) -> bool:
        return True

    def warm_up(self, call: Any, arguments: Any, least_s: float) -> tuple[int, float]:
        call(*arguments[0])
        return 1, self.call_ms

    def cover(self, call_ms: float, *, passes: bool) -> int:
        return 1

    longer_cover = Stopwatch.longer_cover

    def late(self, flushes: int) -> int:
        return 0

    def block(self, call: Any, arguments: Any, places: Any, **options: Any) -> BlockRun:
        call_ms = self.call_ms * (self.times_alone if len(places) == 1 else 1.0)
        calls_ms = [call_ms] * len(places)

        def go() -> Block:
            self.meanwhile()
            seeds, seeding_s = list(options["seeds"]), 0.0
            for given, put in zip(arguments, places, strict=True):
                if seeds:
                    begin = self.clock.now_s
                    modules.seed_everything(seeds.pop(0))
                    seeding_s += self.clock.now_s - begin
                for place, leaf in zip(put, take_apart(call(*given)).leaves, strict=True):
                    place.copy_(leaf)
            self.clock.wait(wall_of(calls_ms))
            late, seeding = self.late(options["flushes"]), seeding_s * 1e3 / len(places)
            return Block((), (), 0.0, late=late, seeding=seeding)

        times = times_of(calls_ms)
        marks = [(Mark(start), Mark(end)) for start, end in zip(times.starts, times.ends, strict=True)]
        return BlockRun(go, marks if options["marked"] else [])


Forward = Callable[[torch.Tensor], torch.Tensor | None]


@dataclass
class Candidate:
    """Answers a race as an honest candidate process; a test spoils some of it.

    Attributes:
        clock: moved by each block.
        forward: gives the outputs; None where it leaves their memory as it is.
        call_ms: what each call takes, by block in turn.
        hidden_ms: what calls take besides, by kind of block; not claimed.
        refused: why blocks of a kind cannot be run.
        warmed: answer to the order to warm up.
        blocks: that were run.
        told: whose time it was, in order.
    """

    clock: Clock
    forward: Forward = torch.relu
    call_ms: Sequence[float] = (1.0,)
    hidden_ms: dict[str, float] = field(default_factory=dict)
    refused: dict[str, str] = field(default_factory=dict)
    warmed: dict[str, Any] = field(default_factory=dict)
    blocks: list[BlockOrder] = field(default_factory=list)
    told: list[tuple[str, str]] = field(default_factory=list)
    order: Prepare | None = None
    inputs: Any = None
    outputs: Any = None

    def __call__(self, order: Any, fds: list[int]) -> list[bytes]:
        if isinstance(order, Prepare):
            self.order = order
            self.inputs = MappedTensors(order.inputs, fds).tree()
            self.outputs = MappedTensors(order.outputs, fds).tree()
            self.warm_up()
            best_ms = max(self.call_ms)
            self.clock.wait(3 * best_ms)
            return [json.dumps({"calls": 3, "best_ms": best_ms} | self.warmed).encode()]
        if isinstance(order, BlockOrder):
            if order.kind in self.refused:
                return [json.dumps({"ready": False, "why": self.refused[order.kind]}).encode()]
            self.blocks.append(order)
            return [READY]
        assert order == GO
        return [DONE, json.dumps(self.run(self.blocks[-1]).to_json()).encode()]

    @property
    def rounds(self) -> Counter[str]:
        """Number of blocks by kind; marked ones of a single call, where others have more, are ``single``."""
        return Counter("single" if order in self.single else order.kind for order in self.blocks)

    @property
    def single(self) -> list[BlockOrder]:
        marked = [order for order in self.blocks if order.kind == "marked"]
        return [order for order in marked if order.calls == 1 < max(other.calls for other in marked)]

    def rounds_of_flushes(self, flushes: int) -> list[int]:
        """Return the numbers of the blocks of many calls that came after so many flushes."""
        marked = [number for number, order in enumerate(self.blocks) if order.kind == "marked"]
        single = self.single
        return [
            number
            for number in marked
            if self.blocks[number].flushes == flushes and self.blocks[number] not in single
        ]

    def warm_up(self) -> None:
        """Do nothing."""

    def run(self, order: BlockOrder) -> Block:
        for number in range(order.calls):
            self.fill_in(number)
        calls_ms = [self.call_ms[len(self.blocks) % len(self.call_ms)]] * order.calls
        self.clock.wait(wall_of(calls_ms) + order.calls * self.hidden_ms.get(order.kind, 0.0))
        return times_of(calls_ms if order.kind == "marked" else [])

    def fill_in(self, number: int) -> None:
        output = self.forward(*self.inputs[number])
        if output is not None:
            self.outputs[number][0].copy_(output)


class Dropping(Candidate):
    """Drops the elements that ``DROPOUT`` drops."""

    def fill_in(self, number: int) -> None:
        order = self.blocks[-1]
        assert order.seed is not None
        torch.manual_seed(order.seed + number)
        self.outputs[number][0].copy_(torch.nn.functional.dropout(self.inputs[number][0], 0.5, True))


def race(
    candidate: Candidate,
    source: str = RELU,
    *,
    trials: int = 100,
    reference_ms: float = 1.0,
    meanwhile: Callable[[], None] = lambda: None,
    kept: bool = True,
    best_so_far: float = 0.0,
    tolerance: float | Tolerance = 0.05,
    unwritten: Sequence[torch.Tensor] = (),
    fastest_ms: float = math.inf,
    compiled: Callable[[Any], object] | None = None,
) -> Outcome:
    """Run a race to its end; outputs that are not ``kept`` are compared at once and never later.

    The baseline is ``compiled``, or else the reference.
    """
    with simulated_cuda("sm_90"), torch.no_grad(), scripted(candidate) as held:
        candidate.told = held.clock
        problem = Problem(Reference(source, Seeds(b"key"), "fp32", cuda=False))
        expected = problem.reference.outputs(problem.reference.inputs("expected"), "expected").leaves
        stopwatch: Any = FakeStopwatch(candidate.clock, reference_ms, meanwhile)
        call, rng = compiled or problem.reference.call("eager"), random.Random(1)
        setup = TimingSetup(
            problem.reference, "race", call, stopwatch, expected, rng, shared=True, fastest_ms=fastest_ms
        )
        bytes_of_a_call = setup.output_bytes
        setup.output_bytes = bytes_of_a_call if kept else 2**40
        subject = InterleavedTiming(
            held.dialogue, setup, rng, trials, tolerance, CORES, best_so_far, unwritten
        )
        setup.output_bytes = bytes_of_a_call
        outcome = subject.run()
        if kept:
            subject.audit(outcome)
        return outcome


def flags_of(outcome: Outcome) -> list[Flag]:
    return verdict_flags.of_candidate(outcome.observations, "/job")


def flags(outcome: Outcome) -> set[str]:
    return {flag.id for flag in flags_of(outcome)}


def test_samples_are_all_marked_calls() -> None:
    side = Side()
    side.add(Observed(3.3, times_of([1.0, 2.0])), BlockOrder(2))
    side.add(Observed(13.3, times_of([3.0, 10.0])), BlockOrder(2))
    side.add(Observed(8.0, Block((), (), 0.0)), BlockOrder(4, kind="plain"))
    side.add(Observed(6.0, Block((), (), 0.0)), BlockOrder(4, kind="graph"), 2)
    assert side.samples == pytest.approx([1.0, 2.0, 3.0, 10.0])
    assert side.gpu_ms == pytest.approx(2.5)
    assert side.mean_ms == pytest.approx(4.0)
    assert (side.e2e_ms, side.graph, side.unmarked) == (2.0, [3.0], 6)


def test_gpu_time_is_that_of_both_sides_calls() -> None:
    outcome = Outcome()
    for side, call_ms in ((outcome.candidate, 1.0), (outcome.reference, 3.0)):
        side.add(Observed(9.0, times_of([call_ms, call_ms])), BlockOrder(2))
        side.add(Observed(99.0, Block((), (), 0.0)), BlockOrder(4, kind="plain"))
    assert outcome.gpu_s == pytest.approx((2 + 6 + 4 + 12) / 1e3)


def test_honest_candidate_has_its_times_and_no_flag(clock: Clock) -> None:
    candidate = Candidate(clock, call_ms=[2.0])
    outcome = race(candidate, reference_ms=5.0)
    assert flags(outcome) == set()
    assert (outcome.candidate.gpu_ms, outcome.reference.gpu_ms) == pytest.approx((2.0, 5.0))
    assert (outcome.candidate.e2e_ms, outcome.reference.e2e_ms) == pytest.approx((2.0, 5.0), abs=0.1)
    assert len(outcome.candidate.samples) == sum(
        order.calls for order in candidate.blocks if order.kind == "marked" and order.calls > 1
    )
    assert len(outcome.candidate.calls) == len(outcome.reference.calls) == candidate.rounds["marked"]
    assert (candidate.rounds["plain"], candidate.rounds["graph"]) == (1, 0)
    assert candidate.order is not None
    assert candidate.order.cores == CORES


@pytest.mark.parametrize("kept", [True, False])
def test_each_side_works_on_its_own_time(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, *, kept: bool
) -> None:
    class Watching(Candidate):
        def run(self, order: BlockOrder) -> Block:
            assert self.told[-2:] == [("reference", "timing"), ("candidate", "timing")]
            return super().run(order)

    def watch() -> None:
        whose.update(candidate.told[-1:])

    def cover(stopwatch: FakeStopwatch, call_ms: float, *, passes: bool) -> int:
        watch()
        return 1

    def checksum(leaf: torch.Tensor) -> int:
        watch()
        return summed(leaf)

    whose: set[tuple[str, str]] = set()
    summed = costs.checksum
    monkeypatch.setattr(FakeStopwatch, "cover", cover)
    monkeypatch.setattr(costs, "checksum", checksum)
    candidate = Watching(clock, call_ms=[0.1], hidden_ms={"plain": 2.0}, refused={"graph": "busy"})
    race(candidate, meanwhile=watch, kept=kept)
    watch()
    assert whose == {candidate.told[0]} == {("reference", "timing")}


def test_warm_up_counts_as_work_of_the_gpu(clock: Clock) -> None:
    candidate = Candidate(clock)
    outcome = race(candidate)
    others = sum(order.calls for order in candidate.blocks if order.kind == "plain" or order.calls == 1)
    assert (outcome.candidate.unmarked, outcome.reference.unmarked) == (3 + others, 1 + others)


@pytest.mark.parametrize(
    ("call_ms", "best_so_far", "early"),
    [
        ([8.0], 1.3, False),  # 1.25 may be as good
        ([8.0], 1.2, False),  # a new best
        ([8.0], 1.4, True),
        ([7.0, 9.0], 1.5, False),  # the first two rounds tell too little
        ([7.0, 9.0], 1.7, True),
        ([250.0], 0.04, False),
        ([250.0], 0.1, True),
    ],
)
def test_clearly_slower_candidate_is_stopped_early(
    clock: Clock, call_ms: list[float], best_so_far: float, early: bool
) -> None:
    whole, candidate = Candidate(clock, call_ms=call_ms), Candidate(clock, call_ms=call_ms)
    assert not race(whole, reference_ms=10.0).stopped_early
    outcome = race(candidate, reference_ms=10.0, best_so_far=best_so_far)
    assert outcome.stopped_early is early
    assert candidate.rounds["marked"] == (2 if early else whole.rounds["marked"])
    assert candidate.rounds["plain"] == whole.rounds["plain"]
    assert flags(outcome) == set()


NOISY = [4.2, 4.9, 4.3, 4.8, 4.5]  # five calls a block


@pytest.mark.parametrize(
    ("call_ms", "trials", "rounds"),
    [
        ([1.0], 1, MIN_ROUNDS),
        ([20.0], 1, MIN_ROUNDS),  # four calls a block, so that most find the CPU's caches warm
        ([30.0], 1, MIN_SAMPLES),  # one call a block
        ([4.5], 60, 6),  # calm: until 120 ms are measured
        (NOISY, 60, 12),
        (NOISY, 1000, MAX_ROUNDS),
        ([1000.0], 100, MIN_ROUNDS - 2),
    ],
)
def test_rounds_end_when_samples_suffice(
    clock: Clock, call_ms: list[float], trials: int, rounds: int
) -> None:
    candidate = Candidate(clock, call_ms=call_ms)
    race(candidate, trials=trials)
    assert candidate.rounds["marked"] == rounds
    assert candidate.rounds["plain"] == 1


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("rows", [4, 2000])  # all elements are compared, or some of each call
def test_unwritten_elements_of_timed_calls_are_free(clock: Clock, rows: int, *, kept: bool) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        found = torch.relu(x)
        found[:, 5:] = 99.0
        return found

    source = TEMPLATE.format(body="return torch.relu(x)", size=f"{rows}, 8")
    unwritten = torch.zeros(rows, 8, dtype=torch.bool)
    unwritten[:, 5:] = True
    assert flags(race(Candidate(clock, forward), source, kept=kept, unwritten=[unwritten])) == set()
    for masks in ([], [~unwritten]):
        found = flags(race(Candidate(clock, forward), source, kept=kept, unwritten=masks))
        assert found == {"timed_output_wrong"}


def test_claimed_slow_warm_up_does_not_shorten_race(clock: Clock) -> None:
    candidate = Candidate(clock, warmed={"best_ms": 1e6})
    race(candidate)
    assert MIN_ROUNDS <= candidate.rounds["marked"] < MIN_SAMPLES  # more than one call a block


@pytest.mark.parametrize("best", [None, "1", 1, True, 0.0, -1.0, float("nan"), float("inf"), 1e12, [1.0]])
def test_impossible_warm_up_times_are_rejected(clock: Clock, best: Any) -> None:
    with pytest.raises(CandidateGone, match="it answered with"):
        race(Candidate(clock, warmed={"best_ms": best}))


@pytest.mark.parametrize("calls", [None, 0, -1, 3.0, "3"])
def test_impossible_warm_up_call_counts_are_rejected(clock: Clock, calls: Any) -> None:
    with pytest.raises(CandidateGone, match="times that cannot be"):
        race(Candidate(clock, warmed={"calls": calls}))


def test_claimed_warm_up_calls_fit_into_its_time(clock: Clock) -> None:
    honest = race(Candidate(clock))
    boasting = race(Candidate(clock, warmed={"calls": 10**9}))
    assert boasting.candidate.unmarked <= honest.candidate.unmarked + 1


@pytest.mark.parametrize("kind", ["marked", "plain"])
def test_candidate_refusing_a_block_is_gone(clock: Clock, kind: str) -> None:
    with pytest.raises(CandidateGone, match="refused"):
        race(Candidate(clock, refused={kind: "busy"}))


# the replay as a graph


@pytest.mark.parametrize("kind", ["marked", "plain"])
def test_calls_longer_on_the_wall_are_replayed(clock: Clock, kind: str) -> None:
    candidate = Candidate(clock, hidden_ms={kind: 2.0, "graph": 1.0})
    outcome = race(candidate)
    assert candidate.rounds["graph"] == 12
    assert outcome.candidate.graph == pytest.approx([2.0] * 12, abs=0.1)
    assert outcome.reference.graph == pytest.approx([1.0] * 12, abs=0.1)
    assert flags(outcome) == set()


def test_calls_of_uneven_length_are_replayed(clock: Clock) -> None:
    class Uneven(Candidate):
        def run(self, order: BlockOrder) -> Block:
            block = super().run(order)
            if order.kind != "marked":
                return block
            calls_ms = [0.1] * order.calls
            calls_ms[-1] = order.calls - sum(calls_ms[:-1])
            return times_of(calls_ms)

    candidate = Uneven(clock)
    outcome = race(candidate)
    assert outcome.is_uneven
    assert candidate.rounds["graph"] == 12
    assert outcome.candidate.graph == pytest.approx([1.0] * 12, abs=0.1)


@pytest.mark.parametrize(
    ("candidate_ms", "reference_ms", "calls"),
    [
        (1.0, 1.0, (24, 24)),
        (1.0, 30.0, (24, 1)),
        (7.0, 7.0, (4, 4)),
        (20.0, 5.0, (4, 4)),
        (20.0, 30.0, (4, 4)),
        (7.0, 30.0, (4, 2)),
        (20.0, 100.0, (4, 4)),
        (20.0, 300.0, (1, 1)),
        (30.0, 7.0, (1, 1)),
    ],
)
def test_blocks_have_several_calls_unless_these_are_long(
    clock: Clock, candidate_ms: float, reference_ms: float, calls: tuple[int, int]
) -> None:
    outcome = race(Candidate(clock, call_ms=[candidate_ms]), reference_ms=reference_ms)
    assert (len(outcome.candidate.calls[0]), len(outcome.reference.calls[0])) == calls
    assert outcome.flushes == 1


@pytest.mark.parametrize(("fastest_ms", "flushes"), [(math.inf, 1), (0.25, 1), (0.15, 7)])
def test_slow_warm_up_does_not_show_launches(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, fastest_ms: float, flushes: int
) -> None:
    monkeypatch.setattr(FakeStopwatch, "cover", lambda stopwatch, call_ms, *, passes: 7)
    slowed = race(Candidate(clock, call_ms=[0.3]), reference_ms=0.3, fastest_ms=fastest_ms)
    assert slowed.flushes == flushes


@pytest.mark.parametrize(
    ("claimed_ms", "call_ms", "covered"),
    [(0.3, 0.3, False), (0.3, 0.1, True), (0.3, 0.1999, False), (0.1, 0.1, True)],  # a flush takes 1 us
)
def test_false_warm_up_time_does_not_show_launches(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, claimed_ms: float, call_ms: float, *, covered: bool
) -> None:
    monkeypatch.setattr(FakeStopwatch, "cover", lambda stopwatch, call_ms, *, passes: 9 if passes else 7)
    candidate = Candidate(clock, call_ms=[call_ms], warmed={"best_ms": claimed_ms})
    outcome = race(candidate, reference_ms=0.5)
    marked = [order for order in candidate.blocks if order.kind == "marked" and order.calls > 1]
    assert outcome.flushes == marked[-1].flushes == (7 if covered else 1)
    timed = [order for order in marked if order.flushes == outcome.flushes]
    assert len(outcome.candidate.samples) == sum(order.calls for order in timed)
    assert {order.flushes for order in candidate.single} == {9}
    for side in (outcome.candidate, outcome.reference):
        assert len(side.seen) == len(side.calls)  # earlier rounds count as work of the GPU alone
    in_blocks = sum(order.calls for order in candidate.blocks)
    assert 0 < len(outcome.candidate.samples) + outcome.candidate.unmarked - in_blocks <= 3  # warm-up


@pytest.mark.parametrize("together", [False, True])
def test_calls_done_together_are_timed_alone(clock: Clock, *, together: bool) -> None:
    class Together(Candidate):
        def run(self, order: BlockOrder) -> Block:
            block = super().run(order)
            return times_of([1.0] + [0.1] * (order.calls - 1)) if order.kind == "marked" else block

    candidate = (Together if together else Candidate)(clock)
    outcome = race(candidate)
    rounds = 5 if together else 2
    assert candidate.rounds["single"] == rounds
    for side in (outcome.candidate, outcome.reference):
        assert [seen.block.calls[0] for seen in side.single] == pytest.approx([1.0] * rounds)
        assert all(len(block) > 1 for block in side.calls)


def test_outputs_of_calls_alone_are_compared(clock: Clock) -> None:
    class Lazy(Candidate):
        def run(self, order: BlockOrder) -> Block:
            self.forward = torch.relu if order.calls > 1 else torch.abs
            block = super().run(order)
            return times_of([2.0] + [1.0] * (order.calls - 1)) if order.kind == "marked" else block

    assert flags(race(Lazy(clock))) == {"timed_output_wrong"}


@pytest.mark.parametrize(("disturbed", "rounds"), [(0, 3), (2, 3), (5, 6)])
def test_replays_go_on_until_one_is_undisturbed(clock: Clock, disturbed: int, rounds: int) -> None:
    class Disturbed(Candidate):
        def run(self, order: BlockOrder) -> Block:
            self.hidden_ms["graph"] = 1.0 if self.rounds["graph"] <= disturbed else 0.0
            return super().run(order)

    candidate = Disturbed(clock, hidden_ms={"plain": 2.0})
    outcome = race(candidate)
    assert candidate.rounds["graph"] == rounds
    assert min(outcome.candidate.graph) == pytest.approx(1.0, abs=0.1)


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> list[FakeStopwatch]:
    """Stopwatches that waited until the GPU was quiet, one for each time."""

    def wait(stopwatch: FakeStopwatch) -> bool:
        waited.append(stopwatch)
        return True

    waited: list[FakeStopwatch] = []
    monkeypatch.setattr(FakeStopwatch, "wait_for_quiet", wait)
    return waited


def test_blocks_slowed_for_a_while_are_repeated(clock: Clock, waits: list[FakeStopwatch]) -> None:
    class Disturbed(Candidate):
        def run(self, order: BlockOrder) -> Block:
            self.hidden_ms["plain"] = 0.0 if waits else 2.0
            return super().run(order)

    candidate = Disturbed(clock)
    outcome = race(candidate)
    assert flags(outcome) == set()
    assert (candidate.rounds["plain"], candidate.rounds["graph"]) == (3, 0)
    assert outcome.candidate.e2e_ms == pytest.approx(1.0, abs=0.1)


@pytest.mark.parametrize(("waits_needed", "rounds"), [(0, 1), (1, 3), (3, 7), (9, 9)])
def test_random_calls_slowed_for_long_are_repeated(
    clock: Clock, waits: list[FakeStopwatch], waits_needed: int, rounds: int
) -> None:
    class Disturbed(Dropping):
        def run(self, order: BlockOrder) -> Block:
            self.hidden_ms["plain"] = 0.0 if len(waits) >= waits_needed else 2.0
            return super().run(order)

    candidate = Disturbed(clock)
    outcome = race(candidate, DROPOUT)
    assert candidate.rounds["plain"] == rounds
    assert outcome.candidate.e2e_ms == pytest.approx(1.0 if rounds < 9 else 3.0, abs=0.1)


def test_replays_wait_until_the_gpu_is_quiet(clock: Clock, waits: list[FakeStopwatch]) -> None:
    class Disturbed(Candidate):
        def run(self, order: BlockOrder) -> Block:
            self.hidden_ms["graph"] = 0.0 if len(waits) > 2 else 1.0
            return super().run(order)

    candidate = Disturbed(clock, hidden_ms={"plain": 2.0})
    outcome = race(candidate)
    assert candidate.rounds["graph"] == 7  # the first wait follows a plain round
    assert min(outcome.candidate.graph) == pytest.approx(1.0, abs=0.1)


def test_outputs_of_a_replay_are_compared(clock: Clock) -> None:
    candidate = Candidate(clock, hidden_ms={"plain": 2.0})
    candidate.forward = lambda x: torch.relu(x) if candidate.blocks[-1].kind != "graph" else x
    assert flags(race(candidate)) == {"timed_output_wrong"}


@pytest.mark.parametrize(("wrong", "found"), [(10, set()), (40, {"timed_output_wrong"})])
def test_problem_tolerance_applies_to_sampled_outputs(clock: Clock, wrong: int, found: set[str]) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x)
        y[:wrong] += 9.0
        return y

    own = Tolerance(required_matched_ratio=1 - 10 / 1024)
    assert flags(race(Candidate(clock, forward), tolerance=own)) == found


@pytest.mark.parametrize("size", [4, 5000])
@pytest.mark.parametrize(("share", "found"), [(0.0, set()), (0.25, set()), (1.0, {"timed_output_wrong"})])
def test_wrong_element_share_is_checked_per_timed_call(
    clock: Clock, size: int, share: float, found: set[str]
) -> None:
    def forward(x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(x)
        late = len(candidate.blocks) > 3  # some whole outputs of the first rounds are compared too
        if late and next(calls) % 8 == 0:
            y[: int(share * size)] += 9.0
        return y

    calls = itertools.count()
    candidate = Candidate(clock, forward)
    source = TEMPLATE.format(body="return torch.relu(x)", size=size)
    outcome = race(candidate, source, tolerance=Tolerance(required_matched_ratio=0.75))
    assert flags(outcome) == found
    assert all(flag.evidence and "of timed call " in flag.evidence for flag in flags_of(outcome))


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize(
    ("source", "forward"), [(RELU, torch.relu), (DOUBLED, lambda x: x.mul_(2.0))], ids=["new", "in place"]
)
def test_outputs_are_those_of_the_eager_reference(
    clock: Clock, source: str, forward: Forward, kept: bool
) -> None:
    """A compiled baseline may round differently, by more than the tolerance; it is only timed."""

    def compiled(x: torch.Tensor) -> torch.Tensor | None:
        result = forward(x)
        return None if result is None else result + 1.0

    assert flags(race(Candidate(clock, forward), source, compiled=compiled, kept=kept)) == set()
    wrong = race(Candidate(clock, compiled), source, compiled=compiled, kept=kept)
    assert flags(wrong) == {"timed_output_wrong"}


def test_slow_eager_reference_runs_a_few_calls(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    counts: list[int] = []
    write = TimingSetup.write_expected

    def counted(setup: TimingSetup, sets: Sequence[int], seed: int | None) -> None:
        counts.append(len(sets))
        write(setup, sets, seed)

    monkeypatch.setattr(TimingSetup, "write_expected", counted)
    monkeypatch.setattr(TimingSetup, "eager_calls", 2)
    assert flags(race(Candidate(clock), compiled=torch.relu)) == set()
    assert max(counts) == 2
    wrong = Candidate(clock, lambda x: torch.relu(x) + 1.0)
    assert flags(race(wrong, compiled=torch.relu)) == {"timed_output_wrong"}


@pytest.mark.usefixtures("memory")
@pytest.mark.parametrize("compiled", [None, torch.relu])
@pytest.mark.parametrize("source", [RELU, DOUBLED])
def test_inputs_changed_after_the_answer_help_nobody(
    clock: Clock, compiled: Callable[[Any], object] | None, source: str
) -> None:
    """The candidate skips its work, and zeros are right for the inputs that it leaves behind."""

    def change_inputs() -> None:
        for arguments in candidate.inputs:
            arguments[0].zero_()

    candidate = Candidate(clock, torch.zeros_like)
    found = flags(race(candidate, source, compiled=compiled, meanwhile=change_inputs))
    assert found == {"timed_output_wrong"}


@pytest.mark.parametrize("middle", [0.5, 7.0])
def test_unrequested_forward_pass_times_are_ignored(clock: Clock, middle: float) -> None:
    class Claiming(Candidate):
        def run(self, order: BlockOrder) -> Block:
            block = super().run(order)
            return replace(block, middles=tuple(start + middle for start in block.starts))

    assert race(Claiming(clock)).candidate.forward_ms is None


def test_each_block_has_a_seed_of_its_own(clock: Clock) -> None:
    candidate = Dropping(clock)
    race(candidate, DROPOUT)
    seeds = [order.seed for order in candidate.blocks]
    assert len(set(seeds)) == len(seeds)


def test_random_reference_is_compared_when_compiled(clock: Clock) -> None:
    def compiled(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.dropout(x, 0.5, True) + 1e-6  # rounds differently

    assert flags(race(Dropping(clock), DROPOUT, compiled=compiled)) == set()


def test_slow_random_reference_runs_a_few_calls(clock: Clock) -> None:
    candidate = Dropping(clock, call_ms=[0.5])
    outcome = race(candidate, DROPOUT, reference_ms=5.0)
    assert flags(outcome) == set()
    assert len(outcome.reference.samples) < len(outcome.candidate.samples)


def test_kept_random_numbers_are_a_cheat(clock: Clock) -> None:
    class Keeping(Dropping):
        mask: torch.Tensor | None = None

        def fill_in(self, number: int) -> None:
            super().fill_in(number)
            if self.mask is None:
                self.mask = self.outputs[number][0] != 0
            else:
                torch.mul(self.inputs[number][0] * 2, self.mask, out=self.outputs[number][0])

    assert flags(race(Keeping(clock), DROPOUT)) == {"timed_output_wrong"}


@pytest.mark.parametrize(
    ("times_alone", "seeded", "rounds"), [(2.0, True, 2), (1.5, True, 5), (2.0, False, 5)]
)
def test_seeded_calls_may_take_longer_alone(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, times_alone: float, *, seeded: bool, rounds: int
) -> None:
    monkeypatch.setattr(FakeStopwatch, "times_alone", times_alone)

    class Cold(Dropping if seeded else Candidate):  # type: ignore[misc]
        def run(self, order: BlockOrder) -> Block:
            self.call_ms = [1.0 if order.calls > 1 else 2.0]
            return super().run(order)  # type: ignore[no-any-return]

    candidate = Cold(clock)
    race(candidate, DROPOUT if seeded else RELU)
    assert candidate.rounds["single"] == rounds


@pytest.mark.parametrize("slowed_ms", [0.0, 500.0])
def test_random_outputs_are_not_replayed(clock: Clock, slowed_ms: float) -> None:
    """A slow reference does not explain the candidate's wall time."""
    candidate = Dropping(clock, hidden_ms={"plain": 2.0})
    outcome = race(candidate, DROPOUT, meanwhile=lambda: clock.wait(slowed_ms))
    assert flags(outcome) == set()
    assert (candidate.rounds["plain"], candidate.rounds["graph"]) == (9, 0)
    assert outcome.candidate.e2e_ms == pytest.approx(3.0, abs=0.1)


@pytest.mark.parametrize(
    ("why", "found"),
    [
        ("CUDA error: capturing stream has Unjoined work", {"side_stream"}),
        ("operation not permitted when stream is capturing", set()),
    ],
)
def test_unjoined_work_in_capture_is_a_side_stream(clock: Clock, why: str, found: set[str]) -> None:
    outcome = race(Candidate(clock, hidden_ms={"plain": 2.0}, refused={"graph": why}))
    assert flags(outcome) == found
    assert outcome.candidate.graph == []


# what the candidate finds in its inputs and outputs


def test_outputs_of_an_earlier_round_do_not_count(clock: Clock) -> None:
    """The right answer is always the same, and the candidate writes it once."""
    candidate = Candidate(clock)
    candidate.forward = lambda x: torch.ones_like(x) if len(candidate.blocks) == 1 else None
    outcome = race(candidate, ONES)
    assert flags(outcome) == {"timed_output_wrong"}
    assert re.match(
        r"1024 of 1024 elements of timed call \d+ of round 1 are wrong", flags_of(outcome)[1].evidence
    )


def test_both_sides_may_write_their_inputs(clock: Clock) -> None:
    assert flags(race(Candidate(clock, forward=lambda x: x.mul_(2.0)), DOUBLED)) == set()
    emptied = Candidate(clock, forward=lambda x: x.zero_())
    assert flags(race(emptied, DOUBLED)) == {"timed_output_wrong"}


@pytest.fixture
def little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the inputs of one call fill the memory, so that each block has one."""
    monkeypatch.setattr(timing_setup, "_SHARE_OF_FREE_MEMORY", 0.0)


@pytest.fixture(params=["usual", "little"])
def memory(request: pytest.FixtureRequest) -> None:
    if request.param == "little":
        request.getfixturevalue("little_memory")


@pytest.mark.usefixtures("memory")
def test_written_inputs_are_noted_and_not_the_references(clock: Clock) -> None:
    assert flags(race(Candidate(clock, forward=lambda x: x.relu_()))) == {"inputs_written"}
    zeroed = Candidate(clock, forward=lambda x: x.zero_())
    assert flags(race(zeroed)) == {"inputs_written", "timed_output_wrong"}


def test_warm_up_leaves_no_trace_in_inputs(clock: Clock) -> None:
    class Marking(Candidate):
        def warm_up(self) -> None:
            for (x,) in self.inputs:
                x.fill_(7.0)

    def forward(x: torch.Tensor) -> torch.Tensor:
        assert not bool((x == 7.0).any())
        return torch.relu(x)

    race(Marking(clock, forward))


def test_inputs_written_in_place_are_drawn_anew(clock: Clock) -> None:
    """Otherwise they would double in each round."""
    largest: list[float] = []

    def forward(x: torch.Tensor) -> torch.Tensor:
        largest.append(float(x.abs().max()))
        return x.mul_(2.0)

    race(Candidate(clock, forward=forward), DOUBLED)
    assert max(largest) < 6.0


@pytest.mark.usefixtures("memory")
def test_honest_candidate_passes_with_little_memory_too(clock: Clock) -> None:
    outcome = race(Candidate(clock, call_ms=[2.0]), reference_ms=5.0)
    assert flags(outcome) == set()
    assert outcome.reference.gpu_ms / outcome.candidate.gpu_ms == pytest.approx(2.5)


@pytest.mark.usefixtures("little_memory")
@pytest.mark.parametrize(("draw_s", "redraws"), [(0.0, True), (1.0, False)])
def test_slow_draws_are_kept(clock: Clock, draw_s: float, *, redraws: bool) -> None:
    class Drawing(Reference):
        def inputs(self, trial: str | int) -> list[object]:
            clock.wait(draw_s * 1e3)
            drawn.append(trial)
            return super().inputs(trial)

    drawn: list[str | int] = []
    with simulated_cuda("sm_90"):
        pool = timing_setup.InputPool(
            Drawing(RELU, Seeds(b"key"), "fp32", cuda=False), "pool", 1, random.Random(1), fills=True
        )
        made = len(drawn)
        pool.refresh()
    assert pool.redraws == redraws
    assert len(drawn) - made == (1 if redraws else 0)


@pytest.mark.usefixtures("little_memory")
def test_other_shapes_of_a_later_draw_are_refused(clock: Clock) -> None:
    counted = "import itertools\nimport torch\nCALLS = itertools.count()\n"
    source = TEMPLATE.format(body="return torch.relu(x)", size="64 + (next(CALLS) > 5)")
    source = source.replace("import torch\n", counted, 1)
    with pytest.raises(ReferenceFailed, match="other shapes under other seeds"):
        race(Candidate(clock), source)


@pytest.mark.usefixtures("memory")
def test_no_round_has_the_inputs_of_another(clock: Clock) -> None:
    sums: list[tuple[float, ...]] = []

    class Summing(Candidate):
        def run(self, order: BlockOrder) -> Block:
            sums.append(tuple(float(x.sum()) for (x,) in self.inputs[: order.calls]))
            return super().run(order)

    race(Summing(clock))
    assert all(set(one).isdisjoint(other) for one, other in pairwise(sums))


def test_expanded_inputs_count_with_all_their_elements(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    source = TEMPLATE.format(body="return x.sum(1)", size="64, 1).expand(64, 256")
    stopwatch: Any = FakeStopwatch(clock, 1.0)
    with simulated_cuda("sm_90"):
        reference = Reference(source, Seeds(b"key"), "fp32", cuda=False)
        call, rng, expected = reference.call("eager"), random.Random(1), [torch.empty(64)]
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (10 * 2**20, 10 * 2**20))
        setup = TimingSetup(reference, "race", call, stopwatch, expected, rng, shared=True)
    assert setup.count > 1
    assert 2 * setup.count * setup.pool.set_bytes <= 2**20


# work that is left out where no sample finds it


@pytest.mark.parametrize("kept", [True, False])
@pytest.mark.parametrize("cheat", ["none", "always", "after the first block", "filled in after the answer"])
def test_work_skipped_in_timed_calls_is_detected(clock: Clock, cheat: str, kept: bool) -> None:
    with simulated_cuda("sm_90"):
        model = Reference(SPARSE, Seeds(b"key"), "fp32", cuda=False).call("eager")
    candidate = Candidate(clock, call_ms=[12.0])

    def forward(x: torch.Tensor) -> torch.Tensor:
        honest = cheat == "none" or (cheat == "after the first block" and len(candidate.blocks) == 1)
        return model(x) if honest else torch.zeros(SIZE)

    def meanwhile() -> None:
        if cheat == "filled in after the answer":
            candidate.forward = model
            for number in range(candidate.blocks[-1].calls):
                candidate.fill_in(number)
            candidate.forward = forward

    candidate.forward = forward
    outcome = race(candidate, SPARSE, trials=1, meanwhile=meanwhile, kept=kept)
    assert flags(outcome) == (set() if cheat == "none" else {"timed_output_wrong"})


def clean_times(monkeypatch: pytest.MonkeyPatch, wall_ms: float, *, needed: int) -> tuple[CleanMs, list[int]]:
    """Time a call of 0.01 ms on the device, whose launches take ``wall_ms`` on the host, without a candidate.

    ``needed`` flushes hide the launches; also return the numbers of flushes that were used.
    """

    def block(setup: TimingSetup, sets: Sequence[int], flushes: int) -> Observed:
        used.append(flushes)
        hidden = flushes >= needed
        times = times_of([0.01 if hidden else wall_ms] * len(sets))
        return Observed(1.0, replace(times, late=0 if hidden else len(sets)))

    used: list[int] = []
    setup = TimingSetup.__new__(TimingSetup)
    monkeypatch.setattr(FakeStopwatch, "cover", lambda stopwatch, call_ms, passes: 4)
    known = {
        "_stopwatch": FakeStopwatch(Clock(), wall_ms, flush_ms=0.05), "_call": torch.relu, "count": 8,
        "fastest_ms": wall_ms, "_known_ms": math.inf, "pool": SimpleNamespace(set_bytes=2**40),
        "reference": SimpleNamespace(stochastic=False),
    }  # fmt: skip
    for name, value in known.items():
        setattr(setup, name, value)
    monkeypatch.setattr(TimingSetup, "warm_up", lambda setup: (1, wall_ms))
    monkeypatch.setattr(TimingSetup, "reference_block", block)
    monkeypatch.setattr("online_judge.evaluator.timing.setup.l2_bytes", lambda: 2**20)
    return setup.clean_ms(), used


def test_clean_time_is_taken_with_hidden_launches_too(monkeypatch: pytest.MonkeyPatch) -> None:
    found, used = clean_times(monkeypatch, 3.0, needed=3)
    assert (found.gpu, found.covered) == (pytest.approx(3.0), pytest.approx(0.01))
    assert [found.after(flushes) for flushes in (0, 1, 2)] == [found.gpu, found.gpu, found.covered]
    assert set(used) == {0, 4}
    for wall_ms, covered_ms, used_ones in ((14.0, 0.01, {0, 4}), (16.0, 16.0, {0})):  # a cover hardly helps
        found, used = clean_times(monkeypatch, wall_ms, needed=3)
        assert (found.covered, set(used)) == (pytest.approx(covered_ms), used_ones)


@pytest.mark.parametrize("wall_ms", [0.1, 0.3, 1.9])
def test_clean_time_hides_launches_of_slow_hosts(monkeypatch: pytest.MonkeyPatch, wall_ms: float) -> None:
    found, used = clean_times(monkeypatch, wall_ms, needed=20)
    assert found.gpu == found.covered == pytest.approx(0.01)
    assert sorted({*used} - {0}) == [4, 8, 16, 32]
    found, used = clean_times(monkeypatch, 0.1, needed=100)  # 2 ms are the most
    assert (found.covered, max(used)) == (pytest.approx(0.1), 40)


def test_slow_host_gets_more_flushes(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounds in which the device began calls before they were launched are forgotten."""
    candidate = Candidate(clock, call_ms=[0.1])
    monkeypatch.setattr(FakeStopwatch, "cover", lambda stopwatch, call_ms, passes: 2)
    monkeypatch.setattr(FakeStopwatch, "late", lambda stopwatch, flushes: 0 if flushes >= 8 else 100)
    outcome = race(candidate, reference_ms=0.1)
    assert outcome.flushes == 8
    single = candidate.single
    marked = [order.flushes for order in candidate.blocks if order.kind == "marked" and order not in single]
    assert marked[:3] == [2, 4, 8]
    assert len(outcome.candidate.calls) == len(outcome.reference.calls) == marked.count(8)
    slow = race(Candidate(clock, call_ms=[5.0]), reference_ms=5.0)
    assert slow.flushes <= 1  # the launches of long calls may show


@pytest.mark.parametrize("late", [0, 100])
def test_calls_that_wait_for_the_host_get_flushes(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, late: int
) -> None:
    monkeypatch.setattr(FakeStopwatch, "cover", lambda stopwatch, call_ms, passes: 2)
    monkeypatch.setattr(FakeStopwatch, "late", lambda stopwatch, flushes: late if flushes < 2 else 0)
    assert race(Candidate(clock, call_ms=[0.5]), reference_ms=0.5).flushes == (2 if late else 1)
    # a reference that took long without a candidate gets none, nor one whose calls cannot be replayed
    assert race(Candidate(clock, call_ms=[0.5]), reference_ms=0.5, fastest_ms=2.1).flushes == 1
    assert race(Dropping(clock, call_ms=[0.5]), DROPOUT, reference_ms=0.5).flushes == 1


class LateByClaim(Candidate):
    """Claims that calls of its first ``rounds`` blocks were late."""

    rounds = 0

    def run(self, order: BlockOrder) -> Block:
        made = super().run(order)
        return replace(made, late=len(made.starts) if len(self.blocks) <= self.rounds else 0)


@pytest.mark.parametrize(("rounds", "flushes"), [(0, 1), (1, 2), (2, 4), (9, 4)])
def test_candidate_claims_late_calls_twice(
    clock: Clock, monkeypatch: pytest.MonkeyPatch, rounds: int, flushes: int
) -> None:
    """Whole outputs are compared in rounds that count, however many were forgotten."""
    compared: list[int | None] = []
    compare = InterleavedTiming._compare

    def noted(timing: InterleavedTiming, outcome: Outcome, kept: Any) -> None:
        compared.append(None if kept.call is None else kept.round)
        compare(timing, outcome, kept)

    monkeypatch.setattr(InterleavedTiming, "_compare", noted)
    monkeypatch.setattr(FakeStopwatch, "cover", lambda stopwatch, call_ms, passes: 2)
    candidate = LateByClaim(clock, call_ms=[0.5])
    candidate.rounds = rounds
    outcome = race(candidate, reference_ms=0.5)
    assert outcome.flushes == flushes
    counted = candidate.rounds_of_flushes(flushes)
    assert [number for number in compared if number in counted][:3] == counted[:3]


@pytest.mark.parametrize(
    ("late", "calls", "more"), [(2, 8, False), (3, 8, True), (1, 1, False), (1, 3, False)]
)
def test_few_late_calls_are_no_slow_host(late: int, calls: int, more: bool) -> None:
    setup = TimingSetup.__new__(TimingSetup)
    known = {
        "_stopwatch": FakeStopwatch(Clock(), 0.5), "_call": torch.relu, "fastest_ms": 0.5,
        "_known_ms": math.inf, "reference": SimpleNamespace(stochastic=False),
    }  # fmt: skip
    for name, value in known.items():
        setattr(setup, name, value)
    seen = Observed(1.0, replace(times_of([0.5] * calls), late=late))
    assert (setup.more_flushes(2, 0.5, seen) > 2) is more
