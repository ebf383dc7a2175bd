"""Whose time runs out."""

import pytest

from adaexplore.core.errors import ProblemError
from adaexplore.core.judging.status import Stage
from online_judge.slots.conversation import CandidateTimeout, TimeLimits


class Clock:
    now = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("online_judge.slots.conversation.time", clock)
    return clock


def test_candidate_timeout_names_the_stage(clock: Clock) -> None:
    watch = TimeLimits(10)
    clock.now = 5
    watch.switch("candidate", "forward")
    clock.now = 14.5
    assert watch.remaining_s() == 0.5
    clock.now = 15
    with pytest.raises(CandidateTimeout) as caught:
        watch.remaining_s()
    assert caught.value.stage is Stage.FORWARD


def test_reference_gets_at_least_thirty_seconds(clock: Clock) -> None:
    watch = TimeLimits(10)
    clock.now = 29
    assert watch.remaining_s() == 1
    clock.now = 30
    with pytest.raises(ProblemError, match=r"^the reference was not done after 30 s$"):
        watch.remaining_s()


def test_time_of_earlier_workloads_counts(clock: Clock) -> None:
    first = TimeLimits(40)
    first.switch("candidate", "forward")
    clock.now = 30
    first.switch("reference", "forward")
    clock.now = 45
    first.remaining_s()
    watch = TimeLimits(40, spent=first.spent)
    assert watch.remaining_s() == 25
    watch.switch("candidate", "forward")
    assert watch.remaining_s() == 10
    watch.switch("reference", "forward")
    clock.now = 70
    with pytest.raises(ProblemError, match=r"40 s with all workloads together: ask for a larger timeout$"):
        watch.remaining_s()


def test_waiting_for_the_device_is_nobodys_time(clock: Clock) -> None:
    watch = TimeLimits(10, waited_s=lambda: clock.now)
    watch.switch("none", "")
    clock.now = 1000
    watch.switch("candidate", "timing")
    assert watch.remaining_s() == 10


def test_claimed_waiting_beyond_real_waiting_is_charged(clock: Clock) -> None:
    waited = [0.0]
    watch = TimeLimits(10, waited_s=lambda: waited[0])
    watch.switch("none", "")
    clock.now, waited[0] = 500, 480.0
    assert watch.remaining_s() > 0
    clock.now = 509.9
    assert watch.remaining_s() > 0
    clock.now = 510
    with pytest.raises(ProblemError):
        watch.remaining_s()


def test_time_of_stopped_gateway_is_not_charged(clock: Clock) -> None:
    watch = TimeLimits(10)
    watch.switch("candidate", "forward")
    clock.now = 100
    watch.forgive(98)
    assert watch.remaining_s() == 8


@pytest.mark.parametrize("whose", ["candidate", "tuning"])
def test_time_of_stopped_processes_is_not_charged(clock: Clock, whose: str) -> None:
    stopped = [100.0]
    watch = TimeLimits(10, stopped_s=lambda: stopped[0])
    watch.switch(whose, "forward")
    clock.now, stopped[0] = 20, 115.0
    assert watch.remaining_s() == 5
    clock.now = 24
    assert watch.remaining_s() == 1


def test_reference_is_not_charged_for_stops_and_waits(clock: Clock) -> None:
    stopped, waited = [0.0], [0.0]
    watch = TimeLimits(60, stopped_s=lambda: stopped[0], waited_s=lambda: waited[0])
    clock.now, stopped[0] = 20, 15.0
    assert watch.remaining_s() == 55
    watch.switch("none", "")
    clock.now, stopped[0], waited[0] = 30, 18.0, 6.0  # stopped right after the wait
    watch.switch("reference", "")
    assert watch.remaining_s() == 54


def test_tuning_has_a_limit_of_its_own(clock: Clock) -> None:
    watch = TimeLimits(10)
    watch.switch("tuning", "forward")
    clock.now = 9
    watch.switch("candidate", "forward")
    clock.now = 18
    assert watch.remaining_s() == 1
    watch.switch("tuning", "forward")
    clock.now = 19
    with pytest.raises(CandidateTimeout) as caught:
        watch.remaining_s()
    assert caught.value.stage is Stage.FORWARD


def test_each_side_uses_only_its_own_time(clock: Clock) -> None:
    watch = TimeLimits(40)
    for second in range(0, 60, 2):
        clock.now = second
        watch.switch("candidate", "timing")
        clock.now = second + 1
        watch.switch("reference", "timing")
    clock.now = 60
    watch.switch("candidate", "timing")
    assert watch.remaining_s() == 10


def test_stages_are_reported_with_their_seconds(clock: Clock) -> None:
    watch = TimeLimits(100)
    for now, whose, stage in (
        (1, "candidate", "load"),
        (3, "none", ""),
        (7, "tuning", "forward"),
        (12, "candidate", "forward"),
        (13, "none", ""),
    ):
        clock.now = now
        watch.switch(whose, stage)
    assert watch.stage_seconds == {"load": 3, "lock": 4, "tuning": 5, "forward": 1}


def test_stop_reported_late_costs_the_candidate_nothing(clock: Clock) -> None:
    stopped = [0.0]
    watch = TimeLimits(30, stopped_s=lambda: stopped[0])
    clock.now = 5
    watch.switch("candidate", "forward")
    while clock.now < 25:  # it is stopped all the time
        clock.now += 0.25
        watch.remaining_s()
    stopped[0] = 20.0
    assert watch.remaining_s() == 30


def test_stop_before_candidates_turn_adds_no_time(clock: Clock) -> None:
    stopped = [0.0]
    watch = TimeLimits(30, stopped_s=lambda: stopped[0])
    clock.now = 20
    watch.switch("candidate", "forward")
    clock.now, stopped[0] = 21, 20.0
    assert watch.remaining_s() == 30
    clock.now = 22
    assert watch.remaining_s() == 29
