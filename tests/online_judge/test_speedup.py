"""Statistics of samples that are made up."""

import math
import random
import statistics
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from online_judge.evaluator.timing.speedup import interval, quantile, spread, summarise

TIMES = st.floats(1e-4, 1e4)


def test_mean_trims_a_twentieth_at_each_end() -> None:
    times = summarise([1000.0, *[2.0] * 45, *[4.0] * 45, *[0.001] * 5, *[500.0] * 4])
    assert times.num_trials == 100
    assert (times.mean, times.median) == (3.0, 3.0)
    assert (times.min, times.max) == (0.001, 1000.0)
    assert times.std == pytest.approx(1.0056, abs=1e-4)
    assert (times.p10, times.p90, times.mad) == (2.0, 4.0, 1.0)


def test_single_sample_is_its_own_statistics() -> None:
    times = summarise([1.5])
    assert (times.mean, times.median, times.min, times.max, times.p10, times.p90) == (1.5,) * 6
    assert (times.std, times.mad, times.num_trials) == (0.0, 0.0, 1)


@given(st.lists(TIMES, min_size=1, max_size=200))
def test_statistics_are_in_order(samples: list[float]) -> None:
    times = summarise(samples)
    assert times.min <= times.p10 <= times.median <= times.p90 <= times.max
    assert times.min * (1 - 1e-9) <= times.mean <= times.max * (1 + 1e-9)
    assert times == summarise(samples[::-1])


def test_quantile_is_between_neighbours() -> None:
    assert quantile([1.0, 2.0, 4.0], 0.5) == 2.0
    assert quantile([1.0, 2.0, 4.0], 0.75) == 3.0
    assert (quantile([1.0, 2.0], 0.0), quantile([1.0, 2.0], 1.0)) == (1.0, 2.0)


def rounds(seed: int, level: float, noise: float) -> list[list[float]]:
    rng = random.Random(seed)
    return [[level * rng.gauss(1, noise) for _ in range(20)] for _ in range(10)]


def test_interval_holds_the_ratio_and_grows_with_noise() -> None:
    quiet = interval(rounds(1, 6.0, 0.001), rounds(2, 2.0, 0.001), random.Random(0))
    loud = interval(rounds(1, 6.0, 0.1), rounds(2, 2.0, 0.1), random.Random(0))
    assert quiet[0] <= 3.0 <= quiet[1]
    assert quiet[1] - quiet[0] < 0.01 < loud[1] - loud[0]


@pytest.mark.parametrize("seed", range(5))
def test_noisy_interval_surrounds_the_ratio_of_medians(seed: int) -> None:
    top, bottom = rounds(1, 6.0, 0.1), rounds(2, 2.0, 0.1)
    low, high = interval(top, bottom, random.Random(seed))
    assert low < statistics.median(chain(*top)) / statistics.median(chain(*bottom)) < high


def test_interval_is_that_of_all_calls_medians() -> None:
    """Most rounds have a median of 1, but most calls take 2."""
    bottom = [[1.0, 1.0, 2.0]] * 9 + [[2.0] * 12]
    low, high = interval([[1.0] * len(part) for part in bottom], bottom, random.Random(0))
    assert low <= 1 / statistics.median(chain(*bottom)) <= high


@given(st.lists(st.lists(TIMES, min_size=1, max_size=9), min_size=1, max_size=9))
def test_single_draw_of_all_rounds_gives_their_median(parts: list[list[float]]) -> None:
    """With one round each draw is the round itself."""
    calls = list(chain(*parts))
    low, high = interval([calls], [[1.0]], random.Random(0))
    assert low == high == pytest.approx(statistics.median(calls))


def test_interval_of_the_same_samples_is_the_same() -> None:
    top, bottom = rounds(1, 6.0, 0.1), rounds(2, 2.0, 0.1)
    assert interval(top, bottom, random.Random(0)) == interval(top, bottom, random.Random(0))


def test_drift_that_both_sides_share_widens_nothing() -> None:
    clocks = [1.0, 1.1, 1.2, 1.3, 1.4]
    top = [[6.0 * clock] * 5 for clock in clocks]
    bottom = [[2.0 * clock] * 5 for clock in clocks]
    assert spread(top, bottom) == pytest.approx(0.0, abs=1e-12)


def test_spread_is_standard_error_of_round_ratios() -> None:
    assert math.isinf(spread([[1.0]] * 2, [[1.0]] * 2))
    ratios = [1.0, 1.1, 0.9, 1.0]
    want = statistics.stdev(ratios) / 2
    assert spread([[ratio] for ratio in ratios], [[1.0]] * 4) == pytest.approx(want)
