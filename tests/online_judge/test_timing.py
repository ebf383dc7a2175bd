import pytest

from online_judge.evaluation.timing import summarise


def test_lowest_and_highest_twentieth_are_left_out() -> None:
    times = summarise([1000.0, *[2.0] * 45, *[4.0] * 45, *[0.001] * 5, *[500.0] * 4])
    assert times.num_trials == 90
    assert (times.min, times.max, times.mean, times.median) == (2.0, 4.0, 3.0, 3.0)
    assert times.std == pytest.approx(1.0056, abs=1e-4)


def test_single_sample_is_its_own_statistics() -> None:
    times = summarise([1.5])
    assert (times.mean, times.std, times.num_trials) == (1.5, 0.0, 1)
