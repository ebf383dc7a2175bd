"""Limits that all tasks of a run share."""

from __future__ import annotations

import threading
import time

import pytest

from adaexplore.core.errors import Interrupted
from adaexplore.core.plan import Purpose
from adaexplore.core.usage import Usage
from adaexplore.llm import limits
from adaexplore.llm.limits import LimitedClient
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest, Turn
from adaexplore.settings.config import RunConfig


class Service:
    """Answers after a while and remembers how many asked at the same time, and when."""

    def __init__(self, seconds: float = 0.0, usage: Usage | None = None) -> None:
        self.seconds, self.usage = seconds, usage or Usage()
        self.lock = threading.Lock()
        self.now = self.most = 0
        self.times: list[float] = []

    def complete(self, request: ModelRequest) -> ModelReply:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            self.times.append(time.monotonic())
        time.sleep(self.seconds)
        with self.lock:
            self.now -= 1
        return ModelReply("", Finish.COMPLETE, self.usage, "m")


def ask(client: LimitedClient, count: int, prompt: str = "p") -> list[threading.Thread]:
    def one(number: int) -> None:
        client.complete(ModelRequest(prompt, Purpose.LARGE, str(number)))

    threads = [threading.Thread(target=one, args=(number,), daemon=True) for number in range(count)]
    for thread in threads:
        thread.start()
    return threads


def finish(threads: list[threading.Thread]) -> None:
    for thread in threads:
        thread.join(20)
        assert not thread.is_alive()


def test_no_more_requests_are_in_flight_than_allowed() -> None:
    service = Service(0.05)
    client = LimitedClient(service, RunConfig(max_concurrent_requests=2), threading.Event())
    finish(ask(client, 6))
    assert service.most == 2
    assert len(service.times) == 6


def test_a_minute_holds_no_more_requests_than_allowed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WINDOW_S", 0.3)
    service = Service()
    client = LimitedClient(service, RunConfig(requests_per_minute=2), threading.Event())
    finish(ask(client, 5))
    times = sorted(service.times)
    assert all(later - earlier >= 0.29 for earlier, later in zip(times, times[2:], strict=False))


def test_tokens_reported_by_the_answer_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "WINDOW_S", 0.3)
    service = Service(usage=Usage(input_tokens=80, output_tokens=20))
    client = LimitedClient(service, RunConfig(tokens_per_minute=150), threading.Event())
    for _ in range(3):
        client.complete(ModelRequest("abcd", Purpose.LARGE, "k"))
    times = service.times
    assert times[1] - times[0] < 0.2  # 100 + 1 of 150
    assert times[2] - times[0] >= 0.29


def test_small_request_does_not_overtake_waiting_large_one() -> None:
    now, answered = 0.0, []

    class Naming(Service):
        def complete(self, request: ModelRequest) -> ModelReply:
            answered.append(request.key)
            return super().complete(request)

    client = LimitedClient(Naming(), RunConfig(tokens_per_minute=100), threading.Event(), clock=lambda: now)
    client.complete(ModelRequest("a" * 240, Purpose.LARGE, "60 tokens"))
    turn = Turn("b" * 200, Purpose.SMALL, "no")
    large = ModelRequest("c", Purpose.REPAIR, "over 50 with what was said before", earlier=(turn,))
    small = ModelRequest("d", Purpose.LARGE, "1 token")
    threads = []
    for request in (large, small):
        threads.append(threading.Thread(target=client.complete, args=(request,), daemon=True))
        threads[-1].start()
        time.sleep(0.05)
    assert answered == ["60 tokens"]
    now = 60.0
    finish(threads)
    assert set(answered[1:]) == {large.key, small.key}


@pytest.mark.parametrize(
    "allowed", [RunConfig(tokens_per_minute=130), RunConfig(requests_per_minute=2)], ids=repr
)
def test_what_is_a_minute_old_expires_alone(allowed: RunConfig) -> None:
    now, stop = 0.0, threading.Event()
    client = LimitedClient(Service(), allowed, stop, clock=lambda: now)
    stop.set()  # a request that would wait is interrupted

    def ask_at(second: float) -> None:
        nonlocal now
        now = second
        client.complete(ModelRequest("a" * 240, Purpose.LARGE, "60 tokens"))

    ask_at(0.0)
    ask_at(30.0)
    with pytest.raises(Interrupted):
        ask_at(59.0)
    ask_at(61.0)
    with pytest.raises(Interrupted):
        ask_at(62.0)
    ask_at(91.0)
    ask_at(200.0)  # all of them at once


def test_tokens_of_slow_answer_count_from_its_end() -> None:
    now, stop = 0.0, threading.Event()

    class Slow(Service):
        def complete(self, request: ModelRequest) -> ModelReply:
            nonlocal now
            now += 70.0
            return super().complete(request)

    service = Slow(usage=Usage(input_tokens=10, output_tokens=200))
    client = LimitedClient(service, RunConfig(tokens_per_minute=150), stop, clock=lambda: now)
    client.complete(ModelRequest("p", Purpose.LARGE, "first"))
    stop.set()  # who would wait is told so
    with pytest.raises(Interrupted):
        client.complete(ModelRequest("p", Purpose.LARGE, "at once"))
    now += 60.0
    client.complete(ModelRequest("p", Purpose.LARGE, "a minute later"))


def test_oversized_request_goes_when_minute_is_empty() -> None:
    client = LimitedClient(Service(), RunConfig(tokens_per_minute=1), threading.Event())
    client.complete(ModelRequest("a long prompt", Purpose.LARGE, "k"))


def test_stop_ends_the_waiting() -> None:
    stop = threading.Event()
    client = LimitedClient(Service(), RunConfig(requests_per_minute=1), stop)
    client.complete(ModelRequest("p", Purpose.LARGE, "first"))
    threading.Timer(0.05, stop.set).start()
    with pytest.raises(Interrupted):
        client.complete(ModelRequest("p", Purpose.LARGE, "second"))
