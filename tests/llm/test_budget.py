"""What a run may spend."""

from __future__ import annotations

import pytest

from adaexplore.core.errors import BudgetReached, ConfigError
from adaexplore.core.usage import Usage
from adaexplore.llm.budget import Budget, Limits

DOLLAR = Usage(input_tokens=900, output_tokens=100, usd=1.0)


class Meter:
    """Tells what was spent."""

    def __init__(self) -> None:
        self.spent = Usage()

    def __call__(self) -> Usage:
        return self.spent


def test_steps_in_flight_count_before_they_are_paid() -> None:
    meter = Meter()
    budget = Budget(Limits(usd=4.5), meter)
    budget.admit()
    meter.spent += DOLLAR
    budget.settle(1.0)
    for _ in range(3):
        budget.admit()  # 1 spent, 3 in flight: 4 in all
    with pytest.raises(BudgetReached, match=r"\$4.5 would be exceeded, \$1.0000 are spent"):
        budget.admit()


def test_estimate_holds_until_a_step_has_ended() -> None:
    budget = Budget(Limits(tokens=2500), Meter(), expected=DOLLAR)
    budget.admit()
    budget.admit()
    with pytest.raises(BudgetReached, match="max_total_tokens: 2500"):
        budget.admit()


def test_first_step_goes_however_little_is_left() -> None:
    budget = Budget(Limits(usd=0.1), Meter(), expected=DOLLAR)
    budget.admit()
    with pytest.raises(BudgetReached):
        budget.admit()


def test_nothing_goes_where_all_is_spent() -> None:
    with pytest.raises(BudgetReached):
        Budget(Limits(tokens=1000), Meter(), before=DOLLAR, steps=0).admit()


def test_once_reached_it_stays_reached() -> None:
    budget = Budget(Limits(usd=1.5), Meter(), expected=DOLLAR)
    budget.admit()
    with pytest.raises(BudgetReached):
        budget.admit()
    budget.settle(1.0)
    with pytest.raises(BudgetReached):
        budget.admit()
    assert budget.reached is not None


def test_earlier_sessions_count() -> None:
    budget = Budget(Limits(usd=3.0), Meter(), before=DOLLAR + DOLLAR, steps=2)
    budget.admit()
    with pytest.raises(BudgetReached):
        budget.admit()


def test_time_counts_with_that_of_the_step_to_come() -> None:
    now = 0.0
    budget = Budget(Limits(wall_s=10.0), Meter(), clock=lambda: now)
    budget.admit()
    now = 6.0
    budget.settle(6.0)
    with pytest.raises(BudgetReached, match="max_wall_s: 10 s would be exceeded, 6 s have passed"):
        budget.admit()


def test_dropped_steps_are_not_in_flight() -> None:
    budget = Budget(Limits(usd=1.5), Meter(), expected=DOLLAR)
    budget.admit()
    budget.drop()
    budget.admit()


def test_dollars_need_a_price() -> None:
    with pytest.raises(ConfigError, match="max_total_tokens instead"):
        Budget(Limits(usd=1.0), Meter(), expected=Usage(usd=None))


def test_dollars_that_nobody_can_count_end_the_run() -> None:
    meter = Meter()
    budget = Budget(Limits(usd=5), meter, expected=DOLLAR)
    budget.admit()
    meter.spent += Usage(usd=None)
    budget.settle(1.0)
    with pytest.raises(BudgetReached, match="without a known price; limit max_total_tokens"):
        budget.admit()
