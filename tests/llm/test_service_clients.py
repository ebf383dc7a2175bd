"""What holds for every dialect, over real HTTP on loopback."""

from __future__ import annotations

import logging
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from adaexplore.core.errors import ConfigError, Interrupted, ModelRequestError, ModelUnavailableError
from adaexplore.core.plan import Purpose
from adaexplore.llm.protocol import Finish, Turn
from adaexplore.llm.retry import RetryPolicy
from tests.llm.conftest import KEY, Connect, ask, build_client
from tests.model_server import Answer, Cut, Fail, ModelServer, Raw


def test_prompt_is_sent_as_the_only_message(server: ModelServer, connect: Connect) -> None:
    reply = connect("m").complete(ask("write\na ünïcode kernel"))
    assert (reply.text, reply.finish, reply.model) == ("ok", Finish.COMPLETE, "m")
    body = server.requests[0].body
    assert body["messages"] == [{"role": "user", "content": "write\na ünïcode kernel"}]
    assert body["model"] == "m"
    assert "temperature" not in body


def test_key_is_sent(server: ModelServer, connect: Connect) -> None:
    server.api_key = KEY
    assert connect().complete(ask()).text == "ok"


def test_temperature_is_sent_when_set(server: ModelServer, connect: Connect) -> None:
    connect(temperature=0.0).complete(ask())
    assert server.requests[0].body["temperature"] == 0.0


def test_usage_counts_cached_tokens_as_input(server: ModelServer, connect: Connect) -> None:
    server.caching = True
    server.reply = lambda prompt: "x" * 400
    client = connect("gpt-5-mini")
    client.complete(replace(ask("a" * 8192), cuts=(8192,)))
    usage = client.complete(replace(ask("a" * 8192 + "b" * 400), cuts=(8192,))).usage
    assert (usage.input_tokens, usage.cached_input_tokens, usage.output_tokens) == (2148, 2048, 100)
    assert usage.usd == pytest.approx((100 * 0.25 + 2048 * 0.025 + 100 * 2.0) / 1e6)
    assert 0 < usage.seconds < 10


def test_price_of_an_unknown_model_is_unknown(connect: Connect) -> None:
    assert connect("my-own-model").complete(ask()).usage.usd is None


def test_price_follows_the_model_that_answered(server: ModelServer, connect: Connect) -> None:
    server.script(Answer("x" * 4_000_000, model="gpt-5-nano-2025-08-07"))
    reply = connect("my-deployment").complete(ask())
    assert reply.model == "gpt-5-nano-2025-08-07"
    assert reply.usage.usd == pytest.approx(0.40, rel=1e-3)


def test_empty_text_is_a_complete_reply(server: ModelServer, connect: Connect) -> None:
    server.script(Answer(None))
    reply = connect().complete(ask())
    assert (reply.text, reply.finish) == ("", Finish.COMPLETE)
    assert len(server.requests) == 1


def test_reply_can_always_be_stored(server: ModelServer, connect: Connect) -> None:
    server.script(Answer("a\ud800b \U0001f680"))
    text = connect().complete(ask()).text
    assert text.encode() == "a\ufffdb \U0001f680".encode()


@pytest.mark.parametrize("status", [408, 409, 429, 500, 502, 503, 529])
def test_temporary_failure_is_retried(server: ModelServer, connect: Connect, status: int) -> None:
    server.script(Fail(status), Fail(status))
    assert connect().complete(ask()).text == "ok"
    assert len(server.requests) == 3


def test_cut_connection_is_retried(server: ModelServer, connect: Connect) -> None:
    server.script(Cut(), Raw('{"choi', length=1000))
    assert connect().complete(ask()).text == "ok"
    assert len(server.requests) == 3
    server.script(*[Cut()] * 3)
    with pytest.raises(ModelUnavailableError, match="no complete answer from http"):
        connect().complete(ask())


def test_attempts_are_limited(server: ModelServer, connect: Connect) -> None:
    server.script(*[Fail(503, "overloaded")] * 9)
    with pytest.raises(ModelUnavailableError, match=r"503 from http://127\.0\.0\.1.*overloaded.*3 attempts"):
        connect().complete(ask())
    assert len(server.requests) == 3


def test_retry_after_is_honoured(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(429, headers={"Retry-After": "0.3"}))
    start = time.monotonic()
    connect().complete(ask())
    assert time.monotonic() - start >= 0.3


def test_wait_longer_than_allowed_is_not_begun(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(429, "slow down", headers={"Retry-After": "86400"}))
    with pytest.raises(ModelUnavailableError, match=r"after 1 attempt: .*due in 864.. s.*run again later"):
        connect().complete(ask())


def test_waiting_ends_when_stopped(server: ModelServer, connect: Connect) -> None:
    stop = threading.Event()
    server.script(Fail(429, headers={"Retry-After": "300"}))
    client = connect(stop=stop, retry_policy=RetryPolicy())
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(client.complete, ask())
        while not server.requests:
            time.sleep(0.005)
        stop.set()
        with pytest.raises(Interrupted):
            future.result(timeout=10)


def test_silent_service_times_out(server: ModelServer, connect: Connect) -> None:
    hold = threading.Event()
    server.script(Answer(hold=hold), Answer(hold=hold), Answer(hold=hold))
    try:
        with pytest.raises(ModelUnavailableError, match=r"no answer from .* in time"):
            connect(timeout_s=0.1).complete(ask())
    finally:
        hold.set()


def test_unreachable_service_is_unavailable(connect: Connect) -> None:
    with pytest.raises(ModelUnavailableError, match=r"cannot reach http://127\.0\.0\.1:9"):
        connect(base_url="http://127.0.0.1:9/v1").complete(ask())


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("{not json", "application/json"),
        ("[]", "application/json"),
        ("null", "application/json"),
        ("", "application/json"),
        ("{}", "application/json"),
        ('{"choices": null, "type": null, "content": null}', "application/json"),
        ("data: [1]\n\ndata: {\n\n", "text/event-stream"),
        ('{"choices": [], "type": "mess"}', "text/plain"),
        ('{"choices": ["no"]}', "application/json"),
        ("[" * 100_000, "application/json"),
        (f"data: {'[' * 100_000}\n\n", "text/event-stream"),
    ],
)
def test_garbage_is_retried(server: ModelServer, connect: Connect, body: str, kind: str) -> None:
    server.script(Raw(body, content_type=kind))
    assert connect().complete(ask()).text == "ok"
    server.script(*[Raw(body, content_type=kind)] * 3)
    with pytest.raises(ModelUnavailableError, match="answered"):
        connect().complete(ask())


def test_a_web_page_is_not_retried(server: ModelServer, connect: Connect) -> None:
    server.script(Raw("<!doctype html><p>welcome</p>", content_type="text/html; charset=utf-8"))
    with pytest.raises(ModelRequestError, match=r"^200 from http.*check base_url \(an HTML page\)$"):
        connect().complete(ask())
    assert len(server.requests) == 1


def test_unauthorized_names_the_variable(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(401, "no such key"))
    with pytest.raises(ModelRequestError, match=r"^401 from http://127.* check \w+_API_KEY \(no such key\)$"):
        connect().complete(ask())
    assert len(server.requests) == 1


def test_unknown_model_names_the_setting(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(404, "no such model"))
    with pytest.raises(ModelRequestError, match=r"^404: model 'gpt-9' not found at http.* set model_name"):
        connect("gpt-9").complete(ask())


def test_wrong_path_names_base_url(server: ModelServer, connect: Connect) -> None:
    server.script(Raw('{"detail": "Not Found"}', status=404))
    with pytest.raises(ModelRequestError, match=r"404.*base_url \(Not Found\)"):
        connect().complete(ask())


def test_refused_request_is_not_retried(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(400, "prompt\nis odd"))
    with pytest.raises(ModelRequestError, match=r"^400 from .*\(prompt is odd\)$"):
        connect().complete(ask())
    assert len(server.requests) == 1


def test_too_long_request_says_what_to_lower(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(400, "maximum context length is 8192 tokens"))
    with pytest.raises(ModelRequestError, match="lower max_completion_tokens"):
        connect().complete(ask())


@pytest.mark.parametrize(
    "told",
    [
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens.",
        "Your input exceeds the context window of this model.",
        "the request exceeds the available context size",
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        "prompt is too long: 208310 tokens > 200000 maximum",
    ],
)
def test_conversation_beyond_the_context_is_cut(server: ModelServer, connect: Connect, told: str) -> None:
    server.script(Fail(400, told), Fail(400, told))
    repair = replace(ask("again"), earlier=(Turn("write", Purpose.LARGE, "half a kernel"),))
    client = connect()
    reply = client.complete(repair)
    assert (reply.finish, reply.usage.usd) == (Finish.CUT, 0)
    with pytest.raises(ModelRequestError, match="lower max_completion_tokens"):
        client.complete(ask())


@pytest.mark.parametrize("code", ["unsupported_value", None])
def test_rejected_temperature_is_dropped_once_for_all(
    server: ModelServer, connect: Connect, caplog: pytest.LogCaptureFixture, code: str | None
) -> None:
    server.rejects = {"temperature": code}
    client = connect(temperature=0.7)
    with caplog.at_level(logging.WARNING, "adaexplore"):
        assert client.complete(ask()).text == "ok"
        assert client.complete(ask()).text == "ok"
    assert ["temperature" in request.body for request in server.requests] == [True, False, False]
    assert [record.message for record in caplog.records] == [
        "gpt-5-mini does not accept temperature (0.7); leaving it out from now on"
    ]


def test_threads_share_what_was_learnt(
    server: ModelServer, connect: Connect, caplog: pytest.LogCaptureFixture
) -> None:
    server.rejects = {"temperature": "unsupported_value"}
    client = connect(temperature=0.7)
    with caplog.at_level(logging.WARNING, "adaexplore"), ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(client.complete, [ask()] * 32))
    assert {reply.text for reply in replies} == {"ok"}
    assert len(caplog.records) == 1
    assert sum("temperature" not in request.body for request in server.requests) == 32


def test_out_of_range_temperature_is_a_user_error(server: ModelServer, connect: Connect) -> None:
    server.script(Fail(400, "temperature: must be at most 2", "temperature", "decimal_above_max_value"))
    with pytest.raises(ModelRequestError, match="must be at most 2"):
        connect(temperature=9.0).complete(ask())


def test_key_appears_nowhere(server: ModelServer, connect: Connect, caplog: pytest.LogCaptureFixture) -> None:
    server.script(
        Fail(429, f"key {KEY} is busy"), Fail(401, f"bad key {KEY}"), Fail(400, f"{KEY}"), Cut(), Cut(), Cut()
    )
    client = connect()
    errors = []
    with caplog.at_level(logging.DEBUG):
        for _ in range(3):
            with pytest.raises((ModelRequestError, ModelUnavailableError)) as caught:
                client.complete(ask())
            errors.append(caught)
    told = "".join(str(error.getrepr(style="long", chain=True)) for error in errors)
    assert KEY not in "".join(str(error.value) for error in errors)
    assert KEY not in told.replace(f'KEY = "{KEY}"', "")
    assert KEY not in caplog.text


def test_key_that_cannot_travel_is_not_shown(connect: Connect) -> None:
    variables = ("OPENAI_API_KEY", "AZURE_API_KEY", "ANTHROPIC_API_KEY")
    with pytest.raises(ModelRequestError, match="holds characters") as caught:
        connect(environment=dict.fromkeys(variables, "sk-ge\nheim"))
    assert "heim" not in str(caught.value)


def test_white_space_around_a_key_is_ignored(server: ModelServer, connect: Connect) -> None:
    variables = ("OPENAI_API_KEY", "AZURE_API_KEY", "ANTHROPIC_API_KEY")
    server.api_key = KEY
    client = connect(environment=dict.fromkeys(variables, f" {KEY}\n"))
    assert client.complete(ask()).text == "ok"


def test_proxies_do_not_stand_before_this_machine(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "ALL_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert connect().complete(ask()).text == "ok"


def test_proxies_are_used_for_other_machines(
    server: ModelServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("http_proxy", server.url)
    for name in ("no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)
    assert connect(base_url="http://model.invalid/v1").complete(ask()).text == "ok"
    assert server.requests[0].headers["host"] == "model.invalid"


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("HTTPS_PROXY", "http://me:geheim@proxy:port"),
        ("HTTPS_PROXY", "socks://me:geheim@127.0.0.1:1080"),
        ("NO_PROXY", "[::1]:geheim"),
    ],
)
def test_unreadable_proxy_settings_are_named(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv(variable, value)
    with pytest.raises(ConfigError, match=f"{variable}.* cannot be read") as caught:
        build_client("claude", "m", environment={"ANTHROPIC_API_KEY": KEY})
    assert "geheim" not in str(caught.value)


def test_socks_proxy_without_package_gives_install_line(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)
    monkeypatch.setenv("ALL_PROXY", "socks5://127.0.0.1:1080")
    with pytest.raises(ConfigError, match="pip install socksio"):
        connect(base_url="http://model.invalid/v1")


@pytest.mark.parametrize(
    "url", ["localhost:8000/v1", "127.0.0.1", "model", "http://", "http://[::1", "http://host:port"]
)
def test_address_that_is_no_url_is_refused(connect: Connect, url: str) -> None:
    with pytest.raises(ConfigError, match="is not a URL; it looks like"):
        connect(base_url=url)


@pytest.mark.parametrize(
    ("server_type", "variable"),
    [("openai", "OPENAI_API_KEY"), ("azure", "AZURE_OPENAI_ENDPOINT"), ("claude", "ANTHROPIC_API_KEY")],
)
def test_missing_key_names_the_variable(server_type: str, variable: str) -> None:
    with pytest.raises(ModelRequestError, match=f"^{variable} is not set"):
        build_client(server_type, "m", environment={})


@pytest.mark.parametrize(("server_type", "package"), [("openai", "openai"), ("claude", "anthropic")])
def test_missing_sdk_gives_the_install_line(
    monkeypatch: pytest.MonkeyPatch, server_type: str, package: str
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ModelRequestError, match=f"pip install {package}"):
        build_client(server_type, "m", base_url="http://127.0.0.1:9", environment={})


def test_openai_compatible_server_needs_no_key(server: ModelServer) -> None:
    for server_type, url in (("openai", server.openai_url), ("anthropic", server.url)):
        client = build_client(server_type, "qwen", base_url=url, environment={})
        assert client.complete(ask()).text == "ok"


def test_each_attempt_counts_against_rate_limit(server: ModelServer, connect: Connect) -> None:
    server.script(*[Fail(429)] * 9)
    stop = threading.Event()
    client = connect(requests_per_minute=2, stop=stop)

    def stop_after_two() -> None:
        deadline = time.monotonic() + 30
        while len(server.requests) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        time.sleep(0.3)  # a third one would come meanwhile
        stop.set()

    threading.Thread(target=stop_after_two, daemon=True).start()
    with pytest.raises(Interrupted):
        client.complete(ask())
    assert len(server.requests) == 2


def test_threads_share_one_client(server: ModelServer, connect: Connect) -> None:
    server.reply = lambda prompt: prompt[::-1]
    client = connect()
    prompts = [f"prompt {index}" for index in range(40)]
    with ThreadPoolExecutor(8) as pool:
        replies = list(pool.map(lambda prompt: client.complete(ask(prompt)).text, prompts))
    assert replies == [prompt[::-1] for prompt in prompts]
