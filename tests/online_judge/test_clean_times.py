"""What is known of references' own times."""

import math
from typing import Any

import pytest

from adaexplore.core.wire import EvaluationRequest
from online_judge.protocol.measurement import CleanMs
from online_judge.slots.baselines import CleanTimes

ASKED: dict[str, Any] = {
    "original_model_src": "x = 1",
    "dtype_str": "fp32",
    "tf32": "on",
    "baseline": "eager",
}
KEY = CleanTimes.key(EvaluationRequest(**ASKED))


def test_first_time_stays_unless_replaced() -> None:
    known = CleanTimes()
    assert known.get(KEY) is None
    known.note(KEY, CleanMs(1.5, 2.0, 1.2))
    known.note(KEY, CleanMs(3.0, 4.0, 2.5))
    assert known.get(KEY) == (1.5, 2.0, 1.2)
    known.note(KEY, CleanMs(5.0, 6.0, 4.0), replaces=True)
    assert known.get(KEY) == (5.0, 6.0, 4.0)


@pytest.mark.parametrize("ms", [0.0, -1.5, math.inf, math.nan])
def test_only_times_are_kept(ms: float) -> None:
    known = CleanTimes()
    for times in (None, CleanMs(ms, 1.0, 1.0), CleanMs(1.0, ms, 1.0), CleanMs(1.0, 1.0, ms)):
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
        known.note(str(number), CleanMs(1.0, 1.0, 1.0))
    assert [known.get(key) for key in ("0", "1", "10000")] == [None, (1.0, 1.0, 1.0), (1.0, 1.0, 1.0)]
