"""What a candidate process may say of its blocks."""

from __future__ import annotations

import json
import math
import time
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from online_judge.candidate.process import CandidateProcess
from online_judge.common import trees
from online_judge.common.gradients import ForwardBackward
from online_judge.common.timing import Block, Stopwatch
from online_judge.evaluator.timing.setup import TimingSetup
from online_judge.protocol.orders import Block as BlockOrder

GOOD: dict[str, Any] = {"starts": [0.0, 2.0, 4.0], "ends": [1.0, 3.5, 5.0], "tail": 0.0}
ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


def test_calls_gaps_and_span_of_a_block() -> None:
    block = Block.from_claim(GOOD, 3)
    assert (block.calls, block.gaps, block.span) == ([1.0, 1.5, 1.0], [1.0, 0.5], 5.0)
    assert Block.from_claim(json.loads(json.dumps(block.to_json())), 3) == block


def test_calls_last_at_least_the_clock_resolution() -> None:
    assert Block.from_claim(GOOD | {"ends": [0.0, 3.5, 5.0]}, 3).calls == [0.0005, 1.5, 1.0]


def test_block_has_the_times_of_forward_passes() -> None:
    assert Block.from_claim(GOOD, 3).forwards == []
    block = Block.from_claim(GOOD | {"middles": [0.5, 3.0, 4.0]}, 3)
    assert block.forwards == [0.5, 1.0, 0.0]
    assert Block.from_claim(json.loads(json.dumps(block.to_json())), 3) == block


def test_unmarked_block_has_a_tail_alone() -> None:
    block = Block.from_claim({"starts": [], "ends": [], "tail": 0.5}, 0)
    assert (block.calls, block.gaps, block.span, block.tail) == ([], [], 0.0, 0.5)


@pytest.mark.parametrize(
    "change",
    [
        {"starts": [0.0, 2.0]},
        {"ends": [1.0, 3.5, 5.0, 6.0]},
        {"starts": None},
        {"starts": {"0": 1.0}},
        {"tail": None},
        {"tail": -0.1},
        {"middles": [0.5, 3.0]},
        {"middles": [0.5, 3.0, 5.5]},
        {"middles": [0.5, 1.0, 4.0]},
        {"middles": "abc"},
        {"tail": math.nan},
        {"ends": [1.0, 3.5, math.inf]},
        {"ends": [1.0, 3.5, True]},
        {"ends": [1.0, 3.5, "5"]},
        {"starts": [-1.0, 2.0, 4.0]},
        {"ends": [1.0, 1.5, 5.0]},
        {"ends": [2.5, 3.5, 5.0]},
        {"starts": [0.0, 4.0, 2.0]},
        {"late": 4},
        {"late": -1},
        {"late": 1.5},
    ],
)
def test_impossible_times_are_ignored(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"time|calls"):
        Block.from_claim(GOOD | change, 3)


def test_block_of_another_length_is_not_taken() -> None:
    for calls in (0, 2, 4):
        with pytest.raises(ValueError, match=r"time|calls"):
            Block.from_claim(GOOD, calls)


@given(ANYTHING, st.integers(0, 3))
def test_any_claim_is_a_block_or_refused(claim: object, calls: int) -> None:
    try:
        block = Block.from_claim(claim, calls)
    except ValueError:
        return
    assert len(block.calls) == calls
    assert all(call > 0 for call in block.calls)
    assert all(gap >= 0 for gap in block.gaps)


class Event:
    """An event on a simulated device, which has begun the calls that ``begun`` says."""

    begun: ClassVar[list[bool]] = []

    def __init__(self, **options: bool) -> None:
        """Take any options."""

    def record(self, stream: object) -> None:
        """Do nothing."""

    def query(self) -> bool:
        return self.begun.pop(0)

    def synchronize(self) -> None:
        """Do nothing."""

    def elapsed_time(self, end: Event) -> float:
        return 0.0


def simulated(done: list[str] | None = None) -> Stopwatch:
    """Return a stopwatch of a simulated device; ``done`` gets what it does before calls."""
    stopwatch = Stopwatch.__new__(Stopwatch)
    steps = [] if done is None else done
    known: dict[str, Any] = {
        "_flush": torch.zeros(4), "_stream": SimpleNamespace(stream_id=0, device_index=0, device_type=0),
        "_set_stream": lambda **stream: None, "_event": Event, "_synchronize": lambda: steps.append("wait"),
        "_zero": lambda flushed: steps.append("flush"), "_copy": torch.Tensor.copy_,
        "_no_grad": torch.no_grad, "_now": time.perf_counter, "_cpu_now": lambda: 0.002 * len(steps),
        "_seed": lambda seed: steps.append(str(seed)), "_take_apart": trees.take_apart, "_first_flushes": 1,
    }  # fmt: skip
    for name, value in known.items():
        setattr(stopwatch, name, value)
    return stopwatch


@pytest.mark.parametrize(("begun", "late"), [([False] * 3, 0), ([True] * 3, 3), ([False, True, False], 1)])
def test_calls_begun_before_their_launches_are_late(begun: list[bool], late: int) -> None:
    """The first call of a block finds the CPU's caches cold and does not count."""
    Event.begun = list(begun)
    places = [[torch.zeros(2)] for _ in range(4)]
    run = simulated().block(torch.relu, [(torch.ones(2),)] * 4, places, flushes=1)
    run.go()
    assert run.times().late == late
    assert Event.begun == []


@pytest.mark.parametrize("marked", [True, False])
def test_seeded_calls_begin_when_the_device_is_idle(*, marked: bool) -> None:
    Event.begun = [True]
    done: list[str] = []
    places = [[torch.zeros(2)] for _ in range(2)]
    run = simulated(done).block(
        torch.relu, [(torch.ones(2),)] * 2, places, flushes=1, marked=marked, seeds=[7, 8]
    )
    done.clear()
    run.go()
    assert done == ["flush", "wait", "7", "flush", "wait", "8", "wait"]
    assert run.times().seeding == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("call", "wall_ms", "flushes"),
    [
        (torch.relu, 0.05, 2),  # 0.1 ms, which hide the launches of a short call
        (torch.relu, 0.3, 0),  # the device is busy, it is assumed
        (ForwardBackward(torch.relu), 0.3, 18),  # the host may need all of it for the launches
        (ForwardBackward(torch.relu), 1.0, 40),
        (ForwardBackward(torch.relu), 3.0, 0),
    ],
)
def test_flushes_hide_the_launches_of_a_call(
    monkeypatch: pytest.MonkeyPatch, call: Any, wall_ms: float, flushes: int
) -> None:
    class Clock:
        flush_ms = 0.05
        cover = Stopwatch.cover

    pool = SimpleNamespace(set_bytes=2**40)
    known: dict[str, Any] = {"pool": pool, "count": 1, "fastest_ms": math.inf}
    setup = TimingSetup.__new__(TimingSetup)
    for name, value in (known | {"_call": call, "_stopwatch": Clock()}).items():
        setattr(setup, name, value)
    monkeypatch.setattr("online_judge.evaluator.timing.setup.l2_bytes", lambda: 2**20)
    assert setup.flushes(wall_ms, wall_ms) == flushes


@pytest.mark.parametrize(("seed", "seeds"), [(5, [5, 6]), (None, [])])
def test_candidate_seeds_calls_as_ordered(seed: int | None, seeds: list[int]) -> None:
    process: Any = CandidateProcess.__new__(CandidateProcess)
    process._stopwatch = SimpleNamespace(block=lambda *given, **options: list(options["seeds"]))
    process._prepared = ([(), ()], [[], []], SimpleNamespace(seed=1))
    process._model, process._run, process._buffers = torch.nn.Module(), torch.relu, {}
    assert process._ready_block(BlockOrder(2, seed=seed)) == seeds
