"""What is particular to chat completions, and to Azure's variant of them."""

from __future__ import annotations

import json
import logging

import pytest

from adaexplore.core.errors import ModelRequestError, ModelUnavailableError
from adaexplore.core.plan import Purpose
from adaexplore.llm.protocol import Finish, ModelRequest, Turn
from tests.llm.conftest import AT_ONCE, KEY, Connect, ask, build_client, connector
from tests.model_server import Answer, Fail, ModelServer, Raw


@pytest.fixture
def connect(server: ModelServer) -> Connect:
    return connector("openai", server)


def completion(**fields: object) -> Raw:
    return Raw(json.dumps({"model": "m", **fields}))


def test_limit_and_effort_are_sent(server: ModelServer, connect: Connect) -> None:
    connect(reasoning_effort="low", max_completion_tokens=99).complete(ask())
    body = server.requests[0].body
    assert (body["max_completion_tokens"], body["reasoning_effort"]) == (99, "low")
    assert set(body) == {"model", "messages", "max_completion_tokens", "reasoning_effort"}


def test_requests_of_one_task_share_a_cache_key(server: ModelServer, connect: Connect) -> None:
    client = connect()
    turn = Turn("aabbnow", Purpose.LARGE, "the reply", cuts=(2, 4))
    for request in (
        ModelRequest("aabbnow", Purpose.LARGE, "2_63/1/large", cuts=(2, 4)),
        ModelRequest("aabbccother", Purpose.SMALL, "2_63/2/small", cuts=(2, 4, 6)),
        ModelRequest("again", Purpose.REPAIR, "2_63/1/repair", earlier=(turn,)),
        ModelRequest("aabbnow", Purpose.LARGE, "2_64/1/large", cuts=(2, 4)),
    ):
        client.complete(request)
    first, second, third, other = (request.body["prompt_cache_key"] for request in server.requests)
    assert first == second == third != other
    assert "63" not in first
    assert [request.body["messages"] for request in server.requests[1:3]] == [
        [{"role": "user", "content": "aabbccother"}],
        [
            {"role": "user", "content": "aabbnow"},
            {"role": "assistant", "content": "the reply"},
            {"role": "user", "content": "again"},
        ],
    ]


def test_server_without_cache_key_support_gets_none(
    server: ModelServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    server.rejects = {"prompt_cache_key": "unknown_parameter"}
    client = connect(temperature=1.0)
    for _ in range(2):
        assert client.complete(ModelRequest("aabb", Purpose.LARGE, "k", cuts=(2,))).text == "ok"
    assert ["prompt_cache_key" in request.body for request in server.requests] == [True, False, False]
    assert len(caplog.records) == 1


def test_azure_gets_no_cache_key(server: ModelServer) -> None:
    environment = {"AZURE_OPENAI_ENDPOINT": server.url, "AZURE_API_KEY": KEY}
    client = build_client("azure", "d", environment=environment, retry_policy=AT_ONCE)
    client.complete(ModelRequest("aabb", Purpose.LARGE, "k", cuts=(2,)))
    assert "prompt_cache_key" not in server.requests[0].body


def test_cache_writes_are_counted_without_extra_price(server: ModelServer, connect: Connect) -> None:
    details = {"cached_tokens": 100, "cache_write_tokens": 500}
    usage = {"prompt_tokens": 1000, "completion_tokens": 0, "prompt_tokens_details": details}
    server.script(Answer("x", usage=usage))
    counted = connect("gpt-5-mini").complete(ask()).usage
    assert counted.cache_write_tokens == 500
    assert counted.usd == pytest.approx((900 * 0.25 + 100 * 0.025) / 1e6)


def test_limit_of_the_release_is_the_default(server: ModelServer, connect: Connect) -> None:
    connect().complete(ask())
    assert server.requests[0].body["max_completion_tokens"] == 16384


@pytest.mark.parametrize("code", ["unsupported_parameter", None])
def test_limit_is_renamed_for_older_servers(
    server: ModelServer, connect: Connect, caplog: pytest.LogCaptureFixture, code: str | None
) -> None:
    server.rejects = {"max_completion_tokens": code}
    client = connect(max_completion_tokens=99)
    with caplog.at_level(logging.WARNING, "adaexplore"):
        client.complete(ask())
        client.complete(ask())
    assert [request.body.get("max_tokens") for request in server.requests] == [None, 99, 99]
    assert [record.message for record in caplog.records] == [
        "gpt-5-mini does not accept max_completion_tokens (99); sending it as max_tokens from now on"
    ]


def test_everything_optional_may_be_rejected(server: ModelServer, connect: Connect) -> None:
    names = ("temperature", "reasoning_effort", "max_completion_tokens", "max_tokens")
    server.rejects = dict.fromkeys(names, "unsupported_parameter")
    reply = connect(temperature=1.0, reasoning_effort="low").complete(ask())
    assert reply.text == "ok"
    assert set(server.requests[-1].body) == {"model", "messages"}


@pytest.mark.parametrize(
    "message",
    [
        "Unrecognized request argument supplied: reasoning_effort",
        "Unsupported value: 'reasoning_effort' does not support 'minimal' with this model.",
        "reasoning_effort: Extra inputs are not permitted",
    ],
)
def test_message_alone_names_the_rejected_parameter(
    server: ModelServer, connect: Connect, message: str
) -> None:
    server.script(Fail(400, message))
    connect(temperature=1.0, reasoning_effort="minimal").complete(ask())
    assert "reasoning_effort" not in server.requests[1].body
    assert "temperature" in server.requests[1].body


def test_validation_detail_names_the_rejected_parameter(server: ModelServer, connect: Connect) -> None:
    detail = [{"loc": ["body", "temperature"], "msg": "Extra inputs are not permitted"}]
    server.script(Raw(json.dumps({"detail": detail}), status=422))
    connect(temperature=1.0).complete(ask())
    assert "temperature" not in server.requests[1].body


def test_misspelt_effort_is_for_the_user_to_correct(server: ModelServer, connect: Connect) -> None:
    server.script(
        Fail(400, "Invalid value: 'hgih'. Unsupported; use 'high'.", "reasoning_effort", "invalid_value")
    )
    with pytest.raises(ModelRequestError, match="'hgih'"):
        connect(reasoning_effort="hgih").complete(ask())


@pytest.mark.parametrize(
    ("answer", "finish", "text"),
    [
        (Answer("half", finish="length"), Finish.CUT, "half"),
        (Answer("", finish="length"), Finish.CUT, ""),
        (Answer(None, finish="content_filter"), Finish.REFUSED, ""),
        (Answer(None, message={"refusal": "I cannot."}), Finish.REFUSED, "I cannot."),
        (Answer("done", message={"refusal": None}), Finish.COMPLETE, "done"),
        (Answer(None, finish="tool_calls"), Finish.COMPLETE, ""),
        (Answer("code", message={"reasoning_content": "hm"}), Finish.COMPLETE, "code"),
        (
            Answer(message={"content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}),
            Finish.COMPLETE,
            "ab",
        ),
    ],
)
def test_finish(server: ModelServer, connect: Connect, answer: Answer, finish: Finish, text: str) -> None:
    server.script(answer)
    reply = connect().complete(ask())
    assert (reply.finish, reply.text) == (finish, text)
    assert len(server.requests) == 1


@pytest.mark.parametrize("code", ["content_filter", "invalid_prompt"])
def test_filtered_prompt_is_a_refusal(server: ModelServer, connect: Connect, code: str) -> None:
    server.script(Fail(400, "the prompt triggered the content policy", "prompt", code))
    reply = connect().complete(ask())
    assert reply.finish is Finish.REFUSED
    assert len(server.requests) == 1


def test_spent_quota_is_not_retried(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(429, "You exceeded your quota", code="insufficient_quota", type="insufficient_quota"))
    with pytest.raises(ModelRequestError, match=r"^429 from .* no credit left.*OPENAI_API_KEY"):
        connect().complete(ask())
    assert len(server.requests) == 1


def test_error_inside_a_success_is_read(server: ModelServer, connect: Connect) -> None:
    server.script(completion(error={"code": 502, "message": "upstream"}))
    assert connect().complete(ask()).text == "ok"
    server.script(completion(error={"code": 402, "message": "pay"}))
    with pytest.raises(ModelRequestError, match="no credit"):
        connect().complete(ask())


def test_answer_that_broke_upstream_is_retried(server: ModelServer, connect: Connect) -> None:
    choice = {"finish_reason": "error", "message": {"content": "half"}, "error": {"message": "lost"}}
    server.script(completion(choices=[choice]))
    assert connect().complete(ask()).text == "ok"


@pytest.mark.parametrize("message", [None, {}, "text", {"content": 7}, {"content": [None, 3]}])
def test_malformed_message_is_an_empty_text(server: ModelServer, connect: Connect, message: object) -> None:
    server.script(completion(choices=[{"message": message}]))
    assert connect().complete(ask()).text == ""


@pytest.mark.parametrize("usage", [None, {}, [], "many"])
def test_missing_usage_leaves_the_price_unknown(server: ModelServer, connect: Connect, usage: object) -> None:
    server.script(completion(choices=[{"message": {"content": "x"}}], usage=usage))
    counted = connect().complete(ask()).usage
    assert (counted.input_tokens, counted.output_tokens, counted.usd) == (0, 0, None)


def test_odd_counts_are_read_as_none(server: ModelServer, connect: Connect) -> None:
    odd = {"prompt_tokens": "5", "completion_tokens": -2, "prompt_tokens_details": {"cached_tokens": None}}
    for usage in (odd, {"prompt_tokens": 10**400, "completion_tokens": 10**400}):
        server.script(completion(choices=[{"message": {"content": "x"}}], usage=usage, model="gpt-5-mini"))
        counted = connect().complete(ask()).usage
        assert (counted.input_tokens, counted.cached_input_tokens, counted.output_tokens) == (0, 0, 0)


def test_plain_text_error_page_is_not_repeated(server: ModelServer, connect: Connect) -> None:
    server.script(*[Raw("<html>" + "x" * 9999, status=502, content_type="text/html")] * 3)
    with pytest.raises(ModelUnavailableError, match=r"^502 from http://[\d.:]+/v1: an HTML page; gave up"):
        connect().complete(ask())


def test_secrets_in_the_address_are_not_shown(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(400, "no"))
    address = server.openai_url.replace("http://", "http://me:geheim@")
    with pytest.raises(ModelRequestError) as caught:
        connect(base_url=address).complete(ask())
    assert "geheim" not in str(caught.value)


def test_azure_addresses_the_deployment(server: ModelServer) -> None:
    environment = {"AZURE_OPENAI_ENDPOINT": f"{server.url}/", "AZURE_API_KEY": KEY}
    client = build_client("azure", "my-deployment", environment=environment, retry_policy=AT_ONCE)
    assert client.complete(ask()).text == "ok"
    request = server.requests[0]
    assert request.path == (
        "/openai/deployments/my-deployment/chat/completions?api-version=2024-12-01-preview"
    )
    assert request.headers["api-key"] == KEY


def test_azure_without_key_names_the_variable() -> None:
    with pytest.raises(ModelRequestError, match=r"^AZURE_API_KEY is not set"):
        build_client("azure", "m", environment={"AZURE_OPENAI_ENDPOINT": "https://x.openai.azure.com"})


def test_address_may_come_from_the_environment(server: ModelServer) -> None:
    client = build_client("openai", "m", environment={"OPENAI_BASE_URL": server.openai_url})
    assert client.complete(ask()).text == "ok"
