"""Who may ask, how much, and what supervisors see."""

import asyncio
import json
import socket
import subprocess
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from adaexplore.core.errors import ConfigError
from online_judge.api.auth import AccessControl, is_loopback
from online_judge.common.tokens import Client
from online_judge.settings import Settings

from .live import LiveJudge, judge_environment, running_judge, start_command
from .sources import HONEST, PASSING, REFERENCE, with_forward
from .test_v2_jobs import judged, look, submit

TOKEN = "a-token-of-the-tests"
BEARER = {"Authorization": f"Bearer {TOKEN}"}
LIMIT = 20_000


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveJudge]:
    """Return a judge with a token, a small body limit, JSON logs and a cache for v1."""
    environment: dict[str, Any] = {
        "ADAEXPLORE_JUDGE_TOKEN": TOKEN,
        "MAX_BODY_BYTES": str(LIMIT),
        "LOG_FORMAT": "json",
        "RESULT_CACHE": "1",
    }
    folder = tmp_path_factory.mktemp("guarded")
    with (folder / "log").open("wb") as log, running_judge(folder, log, **environment) as live:
        live.log = folder / "log"
        yield live


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", "/"),
        ("GET", "/health"),
        ("GET", "/metrics"),
        ("GET", "/openapi.json"),
        ("GET", "/nowhere"),
        ("POST", "/evaluate"),
        ("POST", "/v2/problem"),
        ("POST", "/v2/jobs"),
        ("GET", "/v2/jobs/x"),
        ("DELETE", "/v2/jobs/x"),
    ],
)
def test_every_endpoint_wants_the_token(guarded: LiveJudge, method: str, path: str) -> None:
    wrong: list[dict[str, str]] = [
        {},
        {"Authorization": "Bearer wrong"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": TOKEN},
        {"Authorization": "Bearer"},
    ]
    for headers in wrong:
        response = guarded.client.request(method, path, headers=headers)
        assert response.status_code == 401, headers
        assert response.headers["WWW-Authenticate"] == "Bearer"
        assert TOKEN not in response.text
    assert guarded.client.request(method, path, headers=BEARER).status_code not in (401, 403)


def test_supervisors_need_no_token(guarded: LiveJudge) -> None:
    assert guarded.client.get("/livez").json() == {"status": "alive"}
    assert guarded.client.get("/readyz").json() == {"status": "ready"}


@pytest.mark.parametrize("path", ["/evaluate", "/v2/jobs", "/v2/problem"])
@pytest.mark.parametrize("chunked", [False, True])
def test_body_over_the_limit_is_413(guarded: LiveJudge, path: str, chunked: bool) -> None:
    body = b"[" * (LIMIT * 100)  # would be refused as malformed, were it parsed
    content = iter([body]) if chunked else body
    response = guarded.client.post(path, content=content, headers=BEARER)
    assert response.status_code == 413
    assert str(LIMIT) in response.json()["detail"]


def test_body_at_the_limit_passes(guarded: LiveJudge) -> None:
    body = json.dumps({"original_model_src": "x = 1", "custom_model_src": ""}).encode()
    body += b" " * (LIMIT - len(body))
    headers = BEARER | {"Content-Type": "application/json"}
    assert guarded.client.post("/evaluate", content=body, headers=headers).status_code == 200
    assert guarded.client.post("/evaluate", content=body + b" ", headers=headers).status_code == 413


def test_v1_reuses_known_verdicts_when_configured(guarded: LiveJudge) -> None:
    guarded.client.headers.update(BEARER)
    try:
        first, again = guarded.evaluate(PASSING), guarded.evaluate(PASSING)
        assert {**first, "execution_time": 0, "queue_time": 0} == {
            **again,
            "execution_time": 0,
            "queue_time": 0,
        }
        passed = 'evaluations_total{kind="candidate",status="passed"} 1.0'
        assert passed in guarded.client.get("/metrics").text
        assert judged(guarded, PASSING)["cached"] is True
    finally:
        del guarded.client.headers["Authorization"]


def test_log_is_one_json_object_per_event(guarded: LiveJudge) -> None:
    guarded.client.headers.update(BEARER)
    try:
        job = submit(guarded, with_forward("time.sleep(0)\n" + HONEST)).json()["id"]
        look(guarded, job)
        guarded.evaluate("x = 1")
    finally:
        del guarded.client.headers["Authorization"]
    text = guarded.log.read_text()
    lines = [json.loads(line) for line in text.splitlines()]
    mine = {line["event"]: line for line in lines if line.get("job") == job}
    assert set(mine) == {"job.accepted", "job.started", "job.done"}
    assert (mine["job.done"]["kind"], mine["job.done"]["status"]) == ("candidate", "passed")
    assert mine["job.done"]["seconds"] > 0
    assert any(line.get("event") == "evaluation.done" and line["status"] == "load" for line in lines)
    assert TOKEN not in text


def test_metrics_parse_and_count(judge: LiveJudge) -> None:
    judged(judge, PASSING, force=True)
    response = judge.client.get("/metrics")
    assert response.headers["content-type"].startswith("text/plain")
    families = {family.name: family for family in text_string_to_metric_families(response.text)}
    prefix = "adaexplore_judge_"
    for name in (
        "queue_depth",
        "queue_oldest_seconds",
        "busy_slots",
        "jobs",
        "stage_seconds",
        "cache_lookups",
        "infra_errors",
        "evaluations",
    ):
        assert families[prefix + name].samples, name
    stages = {sample.labels["stage"] for sample in families[prefix + "stage_seconds"].samples}
    assert stages >= {"queue", "load", "construct", "forward", "lock", "slot"}
    states = {sample.labels["state"] for sample in families[prefix + "jobs"].samples}
    assert states == {"queued", "running", "done", "cancelled", "failed"}


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "judge.example"])
def test_other_hosts_are_refused_without_a_token(host: str) -> None:
    done = subprocess.run(
        start_command("--host", host), env=judge_environment(), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert "ADAEXPLORE_JUDGE_TOKEN" in done.stderr


@pytest.mark.parametrize(
    ("host", "own"),
    [
        ("127.0.0.1", True),
        ("127.8.8.8", True),
        ("::1", True),
        ("::ffff:127.0.0.1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("10.0.0.1", False),
        ("::ffff:10.0.0.1", False),
        ("localhost.example", False),
        ("", False),
    ],
)
def test_loopback_is_distinguished_from_other_addresses(host: str, own: bool) -> None:
    assert is_loopback(host) is own


def door_code(
    path: str,
    client: tuple[str, int] | None,
    headers: dict[str, str],
    token: str | None,
    clients: tuple[Client, ...] = (),
) -> int:
    codes: list[int] = []

    async def send(message: Any) -> None:
        codes.extend([message["status"]] if "status" in message else [])

    async def receive() -> Any:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await send({"type": "http.response.start", "status": 200})

    state = SimpleNamespace(settings=Settings(token=token, clients=clients))
    scope = {
        "type": "http",
        "path": path,
        "client": client,
        "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        "app": SimpleNamespace(state=state),
    }
    asyncio.run(AccessControl(app)(scope, receive, send))
    (code,) = codes
    return code


@pytest.mark.parametrize(
    ("client", "path", "code"),
    [
        (("127.0.0.1", 1), "/health", 200),
        (("10.0.0.1", 1), "/health", 403),
        (("10.0.0.1", 1), "/livez", 200),
        (None, "/health", 200),
    ],
)
def test_judge_without_a_token_answers_loopback_only(
    client: tuple[str, int] | None, path: str, code: int
) -> None:
    assert door_code(path, client, {}, token=None) == code


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        ("host", "localhost", 200),
        ("host", "LocalHost:12017", 200),
        ("host", "127.0.0.1:1", 200),
        ("host", "127.9.9.9", 200),
        ("host", "[::1]:12017", 200),
        ("host", "evil.example", 403),
        ("host", "evil.example:12017", 403),
        ("host", "localhost.evil.example", 403),
        ("host", "127.0.0.1.evil.example", 403),
        ("host", "localhost@evil.example", 403),
        ("host", "10.0.0.1", 403),
        ("host", "", 403),
        ("host", "[", 403),
        ("origin", "http://localhost:8888", 200),
        ("origin", "http://evil.example", 403),
        ("origin", "null", 403),
    ],
)
def test_requests_led_here_by_other_sites_are_refused(name: str, value: str, code: int) -> None:
    assert door_code("/evaluate", ("127.0.0.1", 1), {name: value}, token=None) == code
    bearer = {"authorization": f"Bearer {TOKEN}"}
    assert door_code("/evaluate", ("10.0.0.1", 1), {name: value} | bearer, token=TOKEN) == 200


def test_foreign_host_runs_no_code(judge: LiveJudge) -> None:
    body = {"original_model_src": REFERENCE, "custom_model_src": PASSING}
    response = judge.client.post("/evaluate", json=body, headers={"Host": "evil.example"})
    assert response.status_code == 403
    assert "evil.example" in response.json()["detail"]
    assert judge.client.get("/livez", headers={"Host": "evil.example"}).status_code == 200


def test_token_reaches_no_candidate(guarded: LiveJudge) -> None:
    candidate = with_forward("print(dict(os.environ))\nraise ValueError")
    body = {"original_model_src": REFERENCE, "custom_model_src": candidate}
    answer = guarded.client.post("/evaluate", json=body, headers=BEARER).json()
    assert "PATH" in answer["metadata"]["stdout"]
    assert TOKEN not in json.dumps(answer)


def test_token_with_blanks_is_refused() -> None:
    with pytest.raises(ConfigError, match="ADAEXPLORE_JUDGE_TOKEN"):
        Settings.from_environment({"ADAEXPLORE_JUDGE_TOKEN": "a b"})
    assert "xyz" not in repr(Settings.from_environment({"ADAEXPLORE_JUDGE_TOKEN": "xyz"}))
