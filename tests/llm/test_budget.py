"""What a run may spend."""

from __future__ import annotations

import contextlib
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.core.errors import BudgetReached, ConfigError, Interrupted, ModelUnavailableError
from adaexplore.core.plan import Purpose
from adaexplore.core.usage import Usage
from adaexplore.llm.budget import Budget, BudgetedClient
from adaexplore.llm.meter import MeteredClient
from adaexplore.llm.protocol import ModelRequest
from adaexplore.settings.config import RunConfig
from tests.stub_model import StubModel

DOLLAR = Usage(input_tokens=900, output_tokens=100, usd=1.0)


def test_steps_in_flight_count_before_they_are_paid() -> None:
    meter = MeteredClient(StubModel())
    budget = Budget(RunConfig(max_cost_usd=4.5), meter)
    budget.admit()
    meter.usage += DOLLAR
    budget.settle(1.0)
    for _ in range(3):
        budget.admit()  # 1 spent, 3 in flight: 4 in all
    with pytest.raises(BudgetReached, match=r"\$4.5 would be exceeded, \$1.0000 are spent"):
        budget.admit()


def test_estimate_holds_until_a_step_has_ended() -> None:
    budget = Budget(RunConfig(max_total_tokens=2800), MeteredClient(StubModel()), expected=DOLLAR)
    budget.admit()
    budget.admit()
    with pytest.raises(BudgetReached, match="max_total_tokens: 2800"):
        budget.admit()


def test_first_step_goes_however_little_is_left() -> None:
    budget = Budget(RunConfig(max_cost_usd=0.1), MeteredClient(StubModel()), expected=DOLLAR)
    budget.admit()
    with pytest.raises(BudgetReached):
        budget.admit()


@pytest.mark.parametrize("limits", [RunConfig(max_total_tokens=1000), RunConfig(max_cost_usd=1.0)])
def test_nothing_goes_where_all_is_spent(limits: RunConfig) -> None:
    with pytest.raises(BudgetReached):
        Budget(limits, MeteredClient(StubModel()), before=DOLLAR, steps=0).admit()


def test_refused_step_may_fit_after_those_in_flight() -> None:
    meter = MeteredClient(StubModel())
    budget = Budget(RunConfig(max_cost_usd=1.5), meter, expected=DOLLAR)
    budget.admit()
    with pytest.raises(BudgetReached):
        budget.admit()
    assert budget.reached is None
    meter.usage += Usage(usd=0.25)
    budget.settle(1.0)
    budget.admit()


def test_cheap_estimate_covers_as_many_steps_as_ended() -> None:
    meter = MeteredClient(StubModel())
    budget = Budget(RunConfig(max_cost_usd=4.0), meter, expected=DOLLAR)
    in_flight = []
    for _ in range(4):
        budget.admit()
        meter.usage += Usage(usd=0.1)
        budget.settle(1.0)
        in_flight.append(_space(budget))
    assert in_flight == [4, 5, 6, 7]  # 3.9 are left: as many at 0.1 as have ended, and three at 1


def _space(budget: Budget) -> int:
    """How many steps more may begin at once."""
    space = 0
    with contextlib.suppress(BudgetReached):
        while True:
            budget.admit()
            space += 1
    for _ in range(space):
        budget.drop()
    return space


def test_budget_reached_with_nothing_in_flight_stays_reached() -> None:
    meter = MeteredClient(StubModel())
    budget = Budget(RunConfig(max_cost_usd=1.5), meter, expected=DOLLAR)
    budget.admit()
    meter.usage += DOLLAR
    budget.settle(1.0)
    for _ in range(2):
        with pytest.raises(BudgetReached, match=r"\$1.5 would be exceeded"):
            budget.admit()
        assert budget.reached is not None
        meter.usage = Usage()


def test_waiting_ends_when_a_step_ends() -> None:
    budget = Budget(RunConfig(max_cost_usd=1.5), MeteredClient(StubModel()), expected=DOLLAR)
    budget.wait()  # nothing is in flight
    budget.admit()
    ended = threading.Timer(0.05, budget.drop)
    ended.start()
    since = time.monotonic()
    budget.wait()
    assert time.monotonic() - since < 0.4
    budget.admit()


def test_earlier_sessions_count() -> None:
    budget = Budget(RunConfig(max_cost_usd=3.0), MeteredClient(StubModel()), before=DOLLAR + DOLLAR, steps=2)
    budget.admit()
    with pytest.raises(BudgetReached):
        budget.admit()


def test_time_limit_includes_the_expected_next_step() -> None:
    now = 0.0  # steps of earlier sessions tell nothing of how long one takes
    budget = Budget(
        RunConfig(max_wall_s=10.0), MeteredClient(StubModel()), before=DOLLAR, steps=8, clock=lambda: now
    )
    budget.admit()
    now = 6.0
    budget.settle(6.0)
    with pytest.raises(BudgetReached, match="max_wall_s: 10 s would be exceeded, 6 s have passed"):
        budget.admit()


def test_dropped_steps_are_not_in_flight() -> None:
    budget = Budget(RunConfig(max_cost_usd=1.5), MeteredClient(StubModel()), expected=DOLLAR)
    budget.admit()
    budget.drop()
    budget.admit()


def test_dollars_need_a_price() -> None:
    with pytest.raises(ConfigError, match="max_total_tokens instead"):
        Budget(RunConfig(max_cost_usd=1.0), MeteredClient(StubModel()), expected=Usage(usd=None))


def test_dollars_that_nobody_can_count_end_the_run() -> None:
    meter = MeteredClient(StubModel())
    budget = Budget(RunConfig(max_cost_usd=5), meter, expected=DOLLAR)
    budget.admit()
    meter.usage += Usage(usd=None)
    budget.settle(1.0)
    with pytest.raises(BudgetReached, match="without a known price; limit max_total_tokens"):
        budget.admit()


REQUEST = ModelRequest("p", Purpose.RULE, "rule/1")


def budgeted(model: StubModel, stop: threading.Event) -> BudgetedClient:
    """Return a client whose limit holds one request in flight, and many that have ended."""
    meter = MeteredClient(model)
    return BudgetedClient(meter, Budget(RunConfig(max_total_tokens=900), meter, expected=DOLLAR), stop)


def test_request_waits_until_cost_is_known() -> None:
    going = threading.Event()

    def answer(_: ModelRequest) -> str:
        assert going.wait(20)
        return "no rule"

    model = StubModel(answer)
    client = budgeted(model, threading.Event())
    with ThreadPoolExecutor(2) as pool:
        replies = [pool.submit(client.complete, REQUEST) for _ in range(2)]
        time.sleep(0.2)
        assert len(model.requests) == 1
        going.set()
        assert [reply.result().text for reply in replies] == ["no rule"] * 2


def test_waiting_request_ends_with_the_command() -> None:
    stop = threading.Event()

    def answer(_: ModelRequest) -> str:
        with pytest.raises(Interrupted):
            client.complete(REQUEST)
        return "no rule"

    client = budgeted(StubModel(answer), stop)
    threading.Timer(0.1, stop.set).start()
    assert client.complete(REQUEST).text == "no rule"


def test_failed_request_is_no_longer_in_flight() -> None:
    def fail(_: ModelRequest) -> str:
        raise ModelUnavailableError("gone")

    client = budgeted(StubModel(fail), threading.Event())
    for _ in range(2):
        with pytest.raises(ModelUnavailableError):
            client.complete(REQUEST)
