"""Whatever a request holds, the answer is no 500: requests are drawn from the application's OpenAPI."""

import json
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from online_judge import app

from .live import LiveJudge

SCHEMA = app.openapi()
TEXTS = st.sampled_from(["", "x", "fp16", "\x00", "\ud800", "é" * 300, "../..", "TBG", "1e999"])
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.sampled_from([-1, 0, 1, 101, 3601, 2**63, 2**70, 10**400]),
    st.floats(),
    TEXTS,
)
JUNK = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=5,
)
POSTS = [path for path, methods in SCHEMA["paths"].items() if "post" in methods]
SETTINGS = settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])


def resolved(schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in schema:
        return SCHEMA["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Values of a schema, some of them right and many nearly so."""
    schema = resolved(schema)
    if "properties" in schema:
        required = {name: values(schema["properties"][name]) for name in schema.get("required", ())}
        every = {name: values(each) for name, each in schema["properties"].items()}
        rest = {name: each for name, each in every.items() if name not in required}
        return st.fixed_dictionaries(required, optional=rest) | st.fixed_dictionaries({}, optional=every)
    choices = [SCALARS, JUNK]
    if "enum" in schema:
        choices.append(st.sampled_from(schema["enum"]))
    choices += [values(each) for each in schema.get("anyOf", ())]
    match schema.get("type"):
        case "integer":
            choices.append(st.integers(schema.get("minimum", -5), schema.get("maximum", 5)))
        case "number":
            choices.append(st.floats(0, 1))
    return st.one_of(choices)


def body_schema(path: str) -> dict[str, Any]:
    found = SCHEMA["paths"][path]["post"].get("requestBody")
    return {} if found is None else found["content"]["application/json"]["schema"]


def send(judge: LiveJudge, path: str, content: bytes, headers: dict[str, str]) -> None:
    response = judge.client.post(path, content=content, headers=headers)
    assert response.status_code < 500 or response.status_code == 501, (response.text, content)
    assert response.status_code != 202 or set(response.json()) == {"id", "status", "position"}


@pytest.mark.parametrize("path", POSTS)
@SETTINGS
@given(data=st.data())
def test_body_like_the_schema(judge: LiveJudge, path: str, data: st.DataObject) -> None:
    body = data.draw(values(body_schema(path)))
    send(judge, path, json.dumps(body).encode(), {"Content-Type": "application/json"})


@pytest.mark.parametrize("path", POSTS)
@SETTINGS
@given(content=st.binary(max_size=60), kind=st.sampled_from(["application/json", "text/plain", "", "x"]))
def test_body_of_any_bytes(judge: LiveJudge, path: str, content: bytes, kind: str) -> None:
    send(judge, path, content, {"Content-Type": kind})


@pytest.mark.parametrize("depth", [200, 100_000])
@pytest.mark.parametrize("path", POSTS)
def test_body_of_great_depth(judge: LiveJudge, path: str, depth: int) -> None:
    content = b'{"request":' + b"[" * depth + b"]" * depth + b"}"
    send(judge, path, content, {"Content-Type": "application/json"})


@SETTINGS
@given(
    wait=st.one_of(st.none(), TEXTS, st.floats(), st.integers()),
    name=TEXTS.filter(lambda text: "\ud800" not in text),
    method=st.sampled_from(["GET", "DELETE", "PUT", "HEAD", "OPTIONS"]),
)
def test_question_about_any_job(judge: LiveJudge, wait: object, name: str, method: str) -> None:
    query = {} if wait is None else {"wait": str(wait).encode("utf-8", "replace").decode()}
    response = judge.client.request(method, f"/v2/jobs/{name.replace(chr(0), '%00')}", params=query)
    assert response.status_code in (200, 404, 405, 422, 307), response.text


@SETTINGS
@given(key=st.binary(max_size=300).filter(lambda key: not set(key) & set(b"\r\n\x00")))
def test_idempotency_key_of_any_bytes(judge: LiveJudge, key: bytes) -> None:
    body = json.dumps({"request": {"test_source": "TBG"}}).encode()
    headers = [(b"Content-Type", b"application/json"), (b"Idempotency-Key", key.strip())]
    response = judge.client.post("/v2/jobs", content=body, headers=headers)
    assert response.status_code in (400, 422, 501), response.text


@pytest.mark.parametrize("source", ["(" * 100_000, "-" * 100_000 + "1", "x." * 50_000 + "y", "[" * 90 + "0"])
def test_source_of_great_depth_does_no_harm(judge: LiveJudge, source: str) -> None:
    body = {"request": {"original_model_src": "x = 1", "custom_model_src": source}}
    job = judge.post("/v2/jobs", body).json()["id"]
    assert judge.client.get(f"/v2/jobs/{job}?wait=30").json()["state"] == "failed"
    assert judge.client.get("/livez").status_code == 200


def test_many_faults_get_a_short_answer(judge: LiveJudge) -> None:
    body = json.dumps({"kind": "candidate", "request": {}} | {f"{'x' * 300}{n}": n for n in range(5000)})
    response = judge.client.post("/v2/jobs", content=body, headers={"Content-Type": "application/json"})
    assert response.status_code == 422
    assert len(response.json()["errors"]) == 50
    assert len(response.content) < 50_000
