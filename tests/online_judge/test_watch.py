"""Whose time runs out."""

import json

import pytest

from online_judge.evaluation.findings import Stage
from online_judge.referee import answer_limit
from online_judge.watch import CandidateTimeout, ReferenceTimeout, Watch


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("online_judge.watch.time", clock)
    return clock


def test_candidate_has_the_limit_and_is_told_the_stage(clock: Clock) -> None:
    watch = Watch(10)
    clock.now = 5
    watch.switch("candidate", "forward")
    clock.now = 14.5
    assert watch.remaining_s() == 0.5
    clock.now = 15
    with pytest.raises(CandidateTimeout) as caught:
        watch.remaining_s()
    assert caught.value.stage is Stage.FORWARD


def test_reference_has_half_a_minute_at_least_and_is_told_how_much(clock: Clock) -> None:
    watch = Watch(10)
    clock.now = 29
    assert watch.remaining_s() == 1
    clock.now = 30
    with pytest.raises(ReferenceTimeout, match=r"^30 s$"):
        watch.remaining_s()


def test_waiting_for_the_device_is_nobodys_time(clock: Clock) -> None:
    watch = Watch(10)
    watch.switch("none", "")
    clock.now = 1000
    watch.switch("candidate", "timing")
    assert watch.remaining_s() == 10


def test_times_of_many_trials_fit_into_an_answer() -> None:
    samples_ms = [1.2345678901234567e-05] * 100_000
    assert len(json.dumps({"samples_ms": samples_ms})) < answer_limit(len(samples_ms))
