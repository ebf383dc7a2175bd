from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from adaexplore.core.errors import ModelUnavailableError
from adaexplore.core.plan import Purpose
from adaexplore.core.usage import Usage
from adaexplore.llm.meter import MeteredClient
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest


class Fixed:
    """Answers with one token for each character of the prompt; fails on an empty one."""

    def complete(self, request: ModelRequest) -> ModelReply:
        if not request.prompt:
            raise ModelUnavailableError("down")
        usage = Usage(len(request.prompt), 1, 2, 0.5, None if request.prompt == "free" else 0.25)
        return ModelReply("text", Finish.COMPLETE, usage, "m")


def test_requests_and_their_cost_are_counted() -> None:
    client = MeteredClient(Fixed())
    assert (client.requests, client.usage) == (0, Usage())
    for purpose, prompt in ((Purpose.LARGE, "abc"), (Purpose.SMALL, "ab"), (Purpose.LARGE, "a")):
        client.complete(ModelRequest(prompt, purpose, "k"))
    assert (client.requests, client.usage) == (3, Usage(6, 3, 6, 1.5, 0.75))


def test_one_unknown_price_makes_the_sum_unknown() -> None:
    client = MeteredClient(Fixed())
    client.complete(ModelRequest("abc", Purpose.RULE, "k"))
    client.complete(ModelRequest("free", Purpose.RULE, "k"))
    assert client.usage.usd is None


def test_failed_requests_are_not_counted() -> None:
    client = MeteredClient(Fixed())
    with pytest.raises(ModelUnavailableError):
        client.complete(ModelRequest("", Purpose.TASK, "k"))
    assert (client.requests, client.usage) == (0, Usage())


def test_threads_lose_no_count() -> None:
    client = MeteredClient(Fixed())
    with ThreadPoolExecutor(8) as pool:
        list(pool.map(client.complete, [ModelRequest("ab", Purpose.LARGE, "k")] * 500))
    assert client.usage.input_tokens == 1000
