"""What is particular to OpenAI's responses; recorded shapes over real HTTP."""

from __future__ import annotations

import logging

import pytest

from adaexplore.core.errors import ModelRequestError, ModelUnavailableError
from adaexplore.core.plan import Purpose
from adaexplore.llm.protocol import Finish, ModelClient, ModelRequest, Turn
from tests.llm.conftest import AT_ONCE, KEY, Connect, ask, build_client, connector
from tests.model_server import Answer, Fail, ModelServer


@pytest.fixture
def connect(server: ModelServer) -> Connect:
    connected = connector("openai", server)

    def build(model: str = "gpt-5-mini", **options: object) -> ModelClient:
        return connected(model, openai_api="responses", **options)

    return build


def test_limit_effort_and_tier_are_sent(server: ModelServer, connect: Connect) -> None:
    client = connect(reasoning_effort="low", service_tier="flex", max_completion_tokens=99)
    assert client.complete(ask("a prompt")).text == "ok"
    assert server.requests[0].path == "/v1/responses"
    assert server.requests[0].body == {
        "model": "gpt-5-mini",
        "input": [{"role": "user", "content": [{"type": "input_text", "text": "a prompt"}]}],
        "store": False,
        "reasoning": {"effort": "low"},
        "service_tier": "flex",
        "max_output_tokens": 99,
    }


def test_tokens_are_priced_by_the_tier_that_answered(server: ModelServer, connect: Connect) -> None:
    usage = {
        "input_tokens": 1000,
        "input_tokens_details": {"cached_tokens": 100, "cache_write_tokens": 0},
        "output_tokens": 50,
        "output_tokens_details": {"reasoning_tokens": 20},
        "total_tokens": 1050,
    }
    full = (900 * 0.25 + 100 * 0.025 + 50 * 2.0) / 1e6
    for tier, dollars in (("flex", full / 2), ("default", full)):
        server.script(Answer(usage=usage, message={"service_tier": tier}))
        counted = connect(service_tier="flex").complete(ask()).usage
        assert (counted.input_tokens, counted.cached_input_tokens, counted.output_tokens) == (1000, 100, 50)
        assert counted.usd == pytest.approx(dollars)


@pytest.mark.parametrize(
    ("message", "text", "finish"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "ok", Finish.CUT),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, "ok", Finish.REFUSED),
        (
            {"output": [{"type": "message", "content": [{"type": "refusal", "refusal": "I cannot"}]}]},
            "I cannot",
            Finish.REFUSED,
        ),
        ({"output": [{"type": "reasoning", "summary": []}]}, "", Finish.COMPLETE),
        (
            {"status": "failed", "output": [], "error": {"code": "invalid_prompt", "message": "flagged"}},
            "flagged",
            Finish.REFUSED,
        ),
    ],
)
def test_how_a_response_ends(
    server: ModelServer, connect: Connect, message: dict[str, object], text: str, finish: Finish
) -> None:
    server.script(Answer(message=message))
    reply = connect().complete(ask())
    assert (reply.text, reply.finish) == (text, finish)


def test_a_failed_response_is_retried(server: ModelServer, connect: Connect) -> None:
    failed = {"status": "failed", "output": [], "error": {"code": "server_error", "message": "sorry"}}
    server.script(Answer(message=failed), Answer("fine"))
    assert connect().complete(ask()).text == "fine"


@pytest.mark.parametrize("message", [{"status": "in_progress"}, {"output": None}])
def test_a_response_without_an_end_is_no_answer(
    server: ModelServer, connect: Connect, message: dict[str, object]
) -> None:
    server.script(*[Answer(message=message)] * 8)
    with pytest.raises(ModelUnavailableError, match="answered without an output"):
        connect().complete(ask())


def test_unsupported_effort_is_left_out(
    server: ModelServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    server.script(
        Fail(400, "Unsupported parameter: 'reasoning.effort'", "reasoning.effort", "unsupported_parameter")
    )
    with caplog.at_level(logging.WARNING, "adaexplore"):
        assert connect(reasoning_effort="low").complete(ask()).text == "ok"
    assert ["reasoning" in request.body for request in server.requests] == [True, False]


def test_a_refused_request_says_what_to_change(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(404, "no such model", code="model_not_found"))
    with pytest.raises(ModelRequestError, match=r"model 'gpt-9' not found .*set model_name"):
        connect("gpt-9").complete(ask())


def test_new_models_get_breakpoints_where_prefixes_end(server: ModelServer, connect: Connect) -> None:
    request = ModelRequest("aabbccddeeff", Purpose.LARGE, "1_1/1/large", cuts=(2, 4, 6, 8, 10))
    connect("gpt-5.6-sol").complete(request)
    body = server.requests[0].body
    assert body["prompt_cache_options"] == {"mode": "explicit"}
    mark = {"mode": "explicit"}
    assert [(part["text"], part.get("prompt_cache_breakpoint")) for part in body["input"][0]["content"]] == [
        ("aa", mark),
        ("bb", mark),
        ("ccdd", mark),
        ("ee", mark),
        ("ff", None),
    ]
    connect("gpt-5-mini").complete(request)
    body = server.requests[1].body
    assert "prompt_cache_options" not in body
    assert len(body["input"][0]["content"]) == 1


def test_a_model_that_takes_no_breakpoints_gets_none(
    server: ModelServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    message = "Unknown parameter: 'input[0].content[0].prompt_cache_breakpoint'."
    server.script(Fail(400, message, "input[0].content[0].prompt_cache_breakpoint", "unknown_parameter"))
    request = ModelRequest("aabb", Purpose.LARGE, "1_1/1/large", cuts=(2,))
    with caplog.at_level(logging.WARNING, "adaexplore"):
        assert connect("gpt-6-other").complete(request).text == "ok"
    assert ["prompt_cache_options" in sent.body for sent in server.requests] == [True, False]
    assert [len(sent.body["input"][0]["content"]) for sent in server.requests] == [2, 1]


def test_a_repair_follows_its_conversation(server: ModelServer, connect: Connect) -> None:
    turn = Turn("aabb", Purpose.LARGE, "the reply", cuts=(2,))
    connect("gpt-5.6-sol").complete(ModelRequest("again", Purpose.REPAIR, "1_1/1/repair", earlier=(turn,)))
    sent = server.requests[0].body["input"]
    assert [message["role"] for message in sent] == ["user", "assistant", "user"]
    assert [len(sent[0]["content"]), sent[1]["content"], len(sent[2]["content"])] == [2, "the reply", 1]


def test_another_server_gets_chat_completions(server: ModelServer) -> None:
    environment = {"OPENAI_BASE_URL": server.openai_url, "OPENAI_API_KEY": KEY}
    for options in ({"base_url": server.openai_url}, {}):
        build_client("openai", "m", environment=environment, retry_policy=AT_ONCE, **options).complete(ask())
    assert {request.path for request in server.requests} == {"/v1/chat/completions"}
