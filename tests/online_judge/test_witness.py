"""Claimed times against the evaluator's wall clock, with made-up blocks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_judge.common.timing import Block
from online_judge.evaluator.timing import clock_check
from online_judge.evaluator.timing.clock_check import Clocks, Observed

CALLS = 100


def block(call_ms: float, gap_ms: float = 0.1, tail_ms: float = 0.01, calls: int = CALLS) -> Block:
    starts = tuple(number * (call_ms + gap_ms) for number in range(calls))
    return Block(starts, tuple(start + call_ms for start in starts), tail_ms)


def observed(
    call_ms: float, gap_ms: float = 0.1, open_ms: float = 0.2, tail_ms: float = 0.01, hidden_ms: float = 0.0
) -> Observed:
    """Return a block of which ``hidden_ms`` a call are not claimed."""
    claim = block(call_ms, gap_ms, tail_ms)
    return Observed(claim.span + open_ms + hidden_ms * CALLS, claim)


REFERENCE = [observed(0.1)] * 3


def test_times_that_fill_the_wall_are_believed() -> None:
    clocks = Clocks.of([observed(0.05)] * 3, REFERENCE)
    assert clocks.claimed_ms == pytest.approx(5.0)
    assert clocks.wall_ms == pytest.approx(5.0)
    assert not clocks.disagree
    assert not clocks.runs_on


@given(st.floats(0.001, 0.2), st.floats(0.001, 0.2))
def test_honest_candidate_of_any_speed_is_believed(own_ms: float, reference_ms: float) -> None:
    assert not Clocks.of([observed(own_ms)], [observed(reference_ms)] * 3).disagree


def test_unclaimed_work_shows_after_or_between_calls() -> None:
    after = [observed(0.02, hidden_ms=0.05)] * 3
    between = [observed(0.02, gap_ms=0.15)] * 3
    for seen in (after, between):
        clocks = Clocks.of(seen, REFERENCE)
        assert clocks.disagree
        assert clocks.wall_ms == pytest.approx(7.0, abs=0.1)


def test_one_block_that_was_held_up_proves_nothing() -> None:
    seen = [observed(0.05), observed(0.05), observed(0.05, open_ms=30.0)]
    assert not Clocks.of(seen, REFERENCE).disagree


def test_small_delays_prove_nothing() -> None:
    short = Observed(0.5, block(0.01, calls=2))
    assert not Clocks.of([short], [Observed(0.2, block(0.01, calls=2))]).disagree


def test_copies_that_take_longer_are_no_hidden_work() -> None:
    seen = [observed(0.02, gap_ms=0.15)] * 3
    assert not Clocks.of(seen, REFERENCE, copy_extra_ms=0.05).disagree


def test_single_call_has_no_gaps() -> None:
    one = Observed(25.2, block(25.0, calls=1))
    clocks = Clocks.of([one], [Observed(30.2, block(30.0, calls=1))])
    assert clocks.wall_ms == pytest.approx(25.0)
    assert not clocks.disagree


def test_device_tail_longer_than_reference_is_detected() -> None:
    assert Clocks.of([observed(0.01, tail_ms=1.5)] * 3, REFERENCE).runs_on
    joined = [observed(0.01, tail_ms=1.5)] * 3
    assert not Clocks.of(joined, [observed(0.1, tail_ms=1.5)] * 3).runs_on


def test_launch_bound_allows_slack_for_one_launch() -> None:
    assert not clock_check.launch_bound(0.004, 0.03)
    assert clock_check.launch_bound(0.004, 0.08)
    assert not clock_check.launch_bound(10.0, 12.9)
    assert clock_check.launch_bound(10.0, 13.1)


def test_replay_confirms_or_does_not() -> None:
    assert clock_check.confirmed(0.004, 0.012)
    assert not clock_check.confirmed(0.004, 0.02)
    assert clock_check.confirmed(1.0, -0.1)  # the copies that are taken off were slower by themselves
