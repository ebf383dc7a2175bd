"""What is particular to Anthropic's messages."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace

import pytest

from adaexplore.core.errors import ModelRequestError, ModelUnavailableError
from adaexplore.core.plan import Purpose
from adaexplore.llm.protocol import Finish, ModelRequest, Turn
from adaexplore.llm.retry import RetryPolicy
from tests.llm.conftest import Connect, ask, build_client, connector
from tests.model_server import Answer, Fail, ModelServer, Raw, Received


@pytest.fixture
def connect(server: ModelServer) -> Connect:
    return connector("anthropic", server)


def stream(*events: Mapping[str, object]) -> Raw:
    lines = "".join(f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in events)
    return Raw(lines, content_type="text/event-stream")


def test_limit_is_always_sent_and_the_answer_streamed(server: ModelServer, connect: Connect) -> None:
    connect(max_completion_tokens=64_000).complete(ask())
    body = server.requests[0].body
    assert (body["max_tokens"], body["stream"]) == (64_000, True)
    assert set(body) == {"model", "messages", "max_tokens", "stream"}


def test_effort_is_sent_as_output_config(server: ModelServer, connect: Connect) -> None:
    connect(reasoning_effort="low").complete(ask())
    assert server.requests[0].body["output_config"] == {"effort": "low"}


@pytest.mark.parametrize(
    "message",
    [
        "output_config.effort: this model does not support the effort parameter",
        "output_config: Extra inputs are not permitted",
    ],
)
def test_rejected_effort_is_dropped(server: ModelServer, connect: Connect, message: str) -> None:
    server.script(Fail(400, message))
    connect(reasoning_effort="low", temperature=1.0).complete(ask())
    assert "output_config" not in server.requests[1].body
    assert "temperature" in server.requests[1].body


def test_deprecated_temperature_is_dropped(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(400, "`temperature` is deprecated for this model."))
    connect(temperature=0.2).complete(ask())
    assert "temperature" not in server.requests[1].body


def test_thinking_is_not_part_of_the_text(server: ModelServer, connect: Connect) -> None:
    blocks = (
        {"type": "thinking", "thinking": "hm, let me see", "signature": "x"},
        {"type": "text", "text": "first, "},
        {"type": "text", "text": "second"},
    )
    server.script(Answer(blocks=blocks), Answer(blocks=blocks, streamed=False))
    client = connect()
    assert client.complete(ask()).text == "first, second"
    assert client.complete(ask()).text == "first, second"


@pytest.mark.parametrize(
    ("stop_reason", "finish"),
    [
        ("end_turn", Finish.COMPLETE),
        ("max_tokens", Finish.CUT),
        ("model_context_window_exceeded", Finish.CUT),
        ("refusal", Finish.REFUSED),
        ("something_new", Finish.COMPLETE),
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_finish(
    server: ModelServer, connect: Connect, stop_reason: str, finish: Finish, streamed: bool
) -> None:
    server.script(Answer("some", finish=stop_reason, streamed=streamed))
    reply = connect().complete(ask())
    assert (reply.text, reply.finish) == ("some", finish)


def test_written_cache_counts_as_input_at_125_percent(server: ModelServer, connect: Connect) -> None:
    usage = {
        "input_tokens": 10,
        "cache_read_input_tokens": 200,
        "cache_creation_input_tokens": 3000,
        "output_tokens": 40,
    }
    server.script(Answer("x", usage=usage))
    counted = connect("claude-sonnet-4-6").complete(ask()).usage
    assert (counted.input_tokens, counted.cached_input_tokens, counted.output_tokens) == (3210, 200, 40)
    assert counted.cache_write_tokens == 3000
    assert counted.usd == pytest.approx((10 * 3.0 + 3000 * 3.75 + 200 * 0.3 + 40 * 15.0) / 1e6)


def marked(request: Received, message: int = 0) -> list[tuple[str, bool]]:
    blocks = request.body["messages"][message]["content"]
    for block in blocks:
        assert block["type"] == "text"
        assert block.get("cache_control", {"type": "ephemeral"}) == {"type": "ephemeral"}
    return [(block["text"], "cache_control" in block) for block in blocks]


def test_first_two_and_last_two_cuts_are_marked(server: ModelServer, connect: Connect) -> None:
    client = connect()
    client.complete(ModelRequest("aabbccddeenow", Purpose.SMALL, "k", cuts=(2, 4, 6, 8, 10)))
    client.complete(ModelRequest("aabbnow", Purpose.LARGE, "k", cuts=(2, 4)))
    client.complete(ModelRequest("aa", Purpose.LARGE, "k", cuts=(2,)))
    assert marked(server.requests[0]) == [
        ("aa", True),
        ("bb", True),
        ("cc", False),
        ("dd", True),
        ("ee", True),
        ("now", False),
    ]
    assert marked(server.requests[1]) == [("aa", True), ("bb", True), ("now", False)]
    assert marked(server.requests[2]) == [("aa", True)]


def test_conversation_keeps_marks_of_its_first_message(server: ModelServer, connect: Connect) -> None:
    turn = Turn("aabbnow", Purpose.SMALL, "the reply\n", cuts=(2, 4))
    connect().complete(ModelRequest("again", Purpose.REPAIR, "k", earlier=(turn,)))
    assert marked(server.requests[0]) == [("aa", True), ("bb", True), ("now", False)]
    assert server.requests[0].body["messages"][1:] == [
        {"role": "assistant", "content": "the reply"},
        {"role": "user", "content": "again"},
    ]


def test_a_server_that_knows_no_marks_gets_none(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(400, "messages.0.content.0.cache_control: Extra inputs are not permitted"))
    client = connect(temperature=1.0)
    for _ in range(2):
        client.complete(ModelRequest("aabbnow", Purpose.LARGE, "k", cuts=(2, 4)))
    assert [request.body["messages"][0]["content"] for request in server.requests[1:]] == ["aabbnow"] * 2
    assert server.requests[2].body["temperature"] == 1.0


def test_marked_prefixes_are_cached_until_they_expire(server: ModelServer, connect: Connect) -> None:
    server.caching, now = True, [0.0]
    server.clock = lambda: now[0]
    client = connect("claude-sonnet-4-6")
    beginning = "a" * 8000
    request = ModelRequest(beginning + "b" * 400, Purpose.LARGE, "k", cuts=(8000,))
    other = ModelRequest(beginning + "c" * 400, Purpose.LARGE, "k", cuts=(8000,))
    first, second = client.complete(request).usage, client.complete(other).usage
    now[0] = 301.0
    late = client.complete(other).usage
    found = [(u.input_tokens, u.cached_input_tokens, u.cache_write_tokens) for u in (first, second, late)]
    assert found == [(2100, 0, 2000), (2100, 2000, 0), (2100, 0, 2000)]
    assert client.complete(ModelRequest(request.prompt, Purpose.LARGE, "k")).usage.cached_input_tokens == 0


def test_overload_inside_a_stream_is_retried(server: ModelServer, connect: Connect) -> None:
    start = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}}
    error = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
    server.script(stream(start, error))
    assert connect().complete(ask()).text == "ok"
    server.script(*[stream(start, error)] * 3)
    with pytest.raises(ModelUnavailableError, match=r"529 from .*: Overloaded"):
        connect().complete(ask())


def test_refusal_to_serve_inside_a_stream_ends_it(server: ModelServer, connect: Connect) -> None:
    server.script(stream({"type": "error", "error": {"type": "authentication_error", "message": "no"}}))
    with pytest.raises(ModelRequestError, match=r"401.*ANTHROPIC_API_KEY"):
        connect().complete(ask())


def test_stream_that_ends_early_is_retried(server: ModelServer, connect: Connect) -> None:
    start = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 1}}}
    half = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "half"}}
    whole = stream(start, half)
    server.script(whole, Raw(whole.body, content_type="text/event-stream", length=len(whole.body) + 50))
    assert connect().complete(ask()).text == "ok"
    assert len(server.requests) == 3


@pytest.mark.parametrize(("rest", "missing"), [("", 50), ("data: [DONE]\n\n", 0)])
def test_a_whole_message_is_an_answer_whatever_follows(
    server: ModelServer, connect: Connect, rest: str, missing: int
) -> None:
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "paid for"}}
    body = stream(delta, {"type": "message_stop"}).body + rest
    server.script(Raw(body, content_type="text/event-stream", length=len(body) + missing))
    assert connect().complete(ask()).text == "paid for"
    assert len(server.requests) == 1


def test_unusual_line_ends_are_part_of_the_text(server: ModelServer, connect: Connect) -> None:
    text = "a\u2028b\x85c\u2029d"
    delta = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}
    events = "".join(
        f"data: {json.dumps(event, ensure_ascii=False)}\r\n\r\n"
        for event in (delta, {"type": "message_stop"})
    )
    server.script(Raw(events, content_type="text/event-stream"))
    assert connect().complete(ask()).text == text


START = {"type": "message_start", "message": {"model": "m", "usage": {"input_tokens": 50_000}}}
DELTA = {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "word "}}


def test_stream_that_only_stays_alive_times_out(server: ModelServer, connect: Connect) -> None:
    server.script(replace(stream(START, *[{"type": "ping"}] * 9), pause_s=0.25))
    client = connect(timeout_s=1.0, retry_policy=RetryPolicy(max_attempts=1))
    with pytest.raises(ModelUnavailableError, match=r"no answer .* in time"):
        client.complete(ask())


def test_answer_may_take_long_while_text_arrives(server: ModelServer, connect: Connect) -> None:
    server.script(replace(stream(START, *[DELTA] * 6, {"type": "message_stop"}), pause_s=0.25))
    assert connect(timeout_s=1.0).complete(ask()).text == "word " * 6
    assert len(server.requests) == 1


BROKEN = stream(START, DELTA)


@pytest.mark.parametrize(
    "broken",
    [
        BROKEN,
        replace(BROKEN, length=len(BROKEN.body) + 50),
        replace(BROKEN, body=f"{BROKEN.body}data: oops\n\n"),
        stream(START, {"type": "error", "error": {"type": "overloaded_error"}}),
    ],
)
def test_tokens_of_a_broken_answer_are_counted(server: ModelServer, connect: Connect, broken: Raw) -> None:
    server.script(broken, broken, Answer("done", usage={"input_tokens": 50_000, "output_tokens": 10}))
    usage = connect("claude-sonnet-4-6").complete(ask()).usage
    assert (usage.input_tokens, usage.output_tokens) == (150_000, 10)
    assert usage.usd == pytest.approx((150_000 * 3.0 + 10 * 15.0) / 1e6)


def test_blocked_output_is_a_refusal(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(400, "Output blocked by content filtering policy"))
    assert connect().complete(ask()).finish is Finish.REFUSED


def test_missing_usage_leaves_the_price_unknown(server: ModelServer, connect: Connect) -> None:
    server.script(stream({"type": "message_start", "message": {"model": "m"}}, {"type": "message_stop"}))
    reply = connect("claude-sonnet-4-6").complete(ask())
    assert (reply.text, reply.usage.usd) == ("", None)


def test_address_may_come_from_the_environment(server: ModelServer) -> None:
    client = build_client("claude", "m", environment={"ANTHROPIC_BASE_URL": server.url})
    assert client.complete(ask()).text == "ok"
