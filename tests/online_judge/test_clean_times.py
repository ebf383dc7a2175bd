"""What is known of references' own times."""

import math
from typing import Any

import pytest

from adaexplore.core.wire import EvaluationRequest
from online_judge.protocol.measurement import CleanMs, Pace
from online_judge.slots.baselines import CleanTimes

ASKED: dict[str, Any] = {
    "original_model_src": "x = 1",
    "dtype_str": "fp32",
    "tf32": "on",
    "baseline": "eager",
}
PACE = Pace(1.0, 0.1, 0.2, 0.003)
KEY = CleanTimes.key(EvaluationRequest(**ASKED))


def test_first_time_of_a_reference_stays() -> None:
    known = CleanTimes()
    assert known.get(KEY) is None
    known.note(KEY, CleanMs(1.5, 2.0, PACE))
    known.note(KEY, CleanMs(3.0, 4.0, PACE))
    assert known.get(KEY) == (1.5, 2.0, PACE)
    known.note("other", CleanMs(1.0, 1.0))
    assert known.get("other") == (1.0, 1.0, None)


@pytest.mark.parametrize("ms", [0.0, -1.5, math.inf, math.nan])
def test_only_times_are_kept(ms: float) -> None:
    known = CleanTimes()
    for times in (
        None,
        CleanMs(ms, 1.0, PACE),
        CleanMs(1.0, ms, PACE),
        CleanMs(1.0, 1.0, PACE._replace(spin=ms)),
    ):
        known.note(KEY, times)
        assert known.get(KEY) is None


@pytest.mark.parametrize(
    ("other", "same"),
    [
        ({"original_model_src": "x = 2"}, False),
        ({"dtype_str": "bf16"}, False),
        ({"tf32": "off"}, False),
        ({"baseline": "compile"}, False),
        ({"seed_num": 43}, False),
        ({"custom_model_src": "y = 1"}, True),
        ({"num_perf_trials": 7}, True),
    ],
)
def test_time_belongs_to_what_the_reference_runs(other: dict[str, Any], same: bool) -> None:
    assert (CleanTimes.key(EvaluationRequest(**ASKED | other)) == KEY) is same


def test_oldest_times_are_dropped() -> None:
    known = CleanTimes()
    for number in range(10_001):
        known.note(str(number), CleanMs(1.0, 1.0, PACE))
    assert [known.get(key) for key in ("0", "1", "10000")] == [None, (1.0, 1.0, PACE), (1.0, 1.0, PACE)]


@pytest.mark.parametrize(
    ("now", "slowdown"),
    [
        (Pace(9.0, 0.1, 0.2, 0.003), 9.0),
        (Pace(9.0, 0.1, 0.6, 0.006), 3.0),  # the GPU's clock is a third
        (Pace(2.0, 0.4, 0.2, 0.003), 1.0),  # memory takes four times as long, and the call hardly needs it
        (Pace(0.5, 0.05, 0.2, 0.003), 1.0),
    ],
)
def test_slowdown_is_what_the_machine_does_not_explain(now: Pace, slowdown: float) -> None:
    assert now.slowdown_of_call(PACE) == pytest.approx(slowdown)
