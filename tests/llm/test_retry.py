from __future__ import annotations

import random
import signal
import threading
import time
from email.utils import formatdate

import pytest

from adaexplore.core.errors import Interrupted, ModelUnavailableError
from adaexplore.llm.retry import Retry, RetryPolicy, ServiceTrouble, retry_after_s


class Asked:
    """Fails with the given troubles, then answers."""

    def __init__(self, *troubles: ServiceTrouble) -> None:
        self.left = list(troubles)
        self.count = 0

    def __call__(self) -> str:
        self.count += 1
        if self.left:
            raise self.left.pop(0)
        return "answer"


class Longest(random.Random):
    """Draws the upper bound."""

    def uniform(self, a: float, b: float) -> float:
        return b


def test_waits_double_to_cap_with_full_jitter() -> None:
    waits: list[float] = []
    policy = RetryPolicy(max_attempts=9, base_s=1.0, cap_s=10.0, max_wait_s=1e9)
    Retry(policy, sleep=waits.append, rng=Longest()).call(Asked(*[ServiceTrouble("busy")] * 8))
    assert waits == [1, 2, 4, 8, 10, 10, 10, 10]
    waits.clear()
    Retry(policy, sleep=waits.append, rng=random.Random(1)).call(Asked(*[ServiceTrouble("busy")] * 8))
    assert all(0 <= wait <= limit for wait, limit in zip(waits, [1, 2, 4, 8, 10, 10, 10, 10], strict=True))
    assert len(set(waits)) == 8


def test_requested_wait_is_never_shortened() -> None:
    waits: list[float] = []
    Retry(RetryPolicy(cap_s=1.0), sleep=waits.append).call(Asked(ServiceTrouble("busy", 90.0)))
    assert 90.0 <= waits[0] <= 91.0


def test_short_requested_waits_do_not_exhaust_attempts() -> None:
    waits: list[float] = []
    policy = RetryPolicy(max_attempts=5, base_s=1.0, cap_s=4.0)
    Retry(policy, sleep=waits.append, rng=Longest()).call(Asked(*[ServiceTrouble("busy", 0.1)] * 4))
    assert waits == [1.1, 2.1, 4.1, 4.1]


def test_attempts_are_counted_with_the_first() -> None:
    asked = Asked(*[ServiceTrouble("busy")] * 9)
    with pytest.raises(ModelUnavailableError, match=r"^busy; gave up after 4 attempts$"):
        Retry(RetryPolicy(max_attempts=4), sleep=lambda seconds: None).call(asked)
    assert asked.count == 4


def test_total_wait_is_limited() -> None:
    waits: list[float] = []
    retry = Retry(RetryPolicy(max_wait_s=100.0), sleep=waits.append)
    with pytest.raises(ModelUnavailableError, match="run again later"):
        retry.call(Asked(*[ServiceTrouble("busy", 40.0)] * 9))
    assert len(waits) == 2


def test_other_errors_pass_through() -> None:
    def ask() -> None:
        raise KeyError("bug")

    with pytest.raises(KeyError):
        Retry().call(ask)


def test_stop_ends_a_wait_at_once() -> None:
    stop = threading.Event()
    threading.Timer(0.05, stop.set).start()
    start = time.monotonic()
    with pytest.raises(Interrupted):
        Retry(stop=stop).call(Asked(ServiceTrouble("busy", 300.0)))
    assert time.monotonic() - start < 30


def test_signal_ends_a_wait_at_once() -> None:
    class Signalled(Exception):
        pass

    def handle(number: int, frame: object) -> None:
        raise Signalled

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGUSR1)).start()
        with pytest.raises(Signalled):
            Retry().call(Asked(ServiceTrouble("busy", 300.0)))
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7.0),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after": formatdate(1_000_030, usegmt=True)}, 30.0),
        ({"retry-after": formatdate(900_000, usegmt=True)}, 0.0),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "nan"}, None),
        ({"retry-after": "inf"}, None),
        ({"retry-after": "Mon, 99 Foo 2026 00:00:00 GMT"}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after_s(headers, now=lambda: 1_000_000.0) == seconds
