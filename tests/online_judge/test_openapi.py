"""The OpenAPI document says what clients really meet: limits, refusals and access."""

from typing import Any

import pytest

from online_judge.api.app import create_app
from online_judge.common.tokens import Client
from online_judge.settings import Settings

OPEN = ("/livez", "/readyz")
DOCUMENT = create_app().openapi()
OPERATIONS = [
    pytest.param(path, operation, id=f"{method} {path}")
    for path, methods in DOCUMENT["paths"].items()
    for method, operation in methods.items()
]
GUARDED = [each for each in OPERATIONS if each.values[0] not in OPEN]


def document_of(settings: Settings) -> dict[str, Any]:
    application = create_app()
    application.openapi()  # what is asked for before the start must not stay
    application.state.settings = settings
    return application.openapi()


@pytest.mark.parametrize("name", ["EvaluationRequest", "ProblemRequest"])
def test_timeout_is_described_with_its_limits(name: str) -> None:
    schema = DOCUMENT["components"]["schemas"][name]["properties"]["timeout"]
    number = next(each for each in schema.get("anyOf", [schema]) if each["type"] == "integer")
    assert (number["minimum"], number["maximum"]) == (1, 3600)


@pytest.mark.parametrize("name", ["FlashInferRequest", "TritonBenchRequest"])
def test_benchmark_code_and_task_are_described_as_nonempty(name: str) -> None:
    fields = DOCUMENT["components"]["schemas"][name]["properties"]
    assert (fields["kernel_code"]["minLength"], fields["task_id"]["minLength"]) == (1, 1)


def test_best_so_far_is_described_as_positive() -> None:
    schema = DOCUMENT["components"]["schemas"]["EvaluationRequest"]["properties"]["best_so_far"]
    assert {"type": "number", "exclusiveMinimum": 0.0} in schema["anyOf"]


@pytest.mark.parametrize(("path", "operation"), GUARDED)
@pytest.mark.parametrize(("code", "header"), [("401", "WWW-Authenticate"), ("429", "Retry-After")])
def test_refusals_of_access_are_described(
    path: str, operation: dict[str, Any], code: str, header: str
) -> None:
    response = operation["responses"][code]
    assert response["headers"][header]["required"] is True
    assert response["content"]["application/json"]["schema"] == {"$ref": "#/components/schemas/Refusal"}


@pytest.mark.parametrize(("path", "operation"), OPERATIONS)
def test_only_metrics_are_plain_text(path: str, operation: dict[str, Any]) -> None:
    types = {(code, kind) for code, each in operation["responses"].items() for kind in each["content"]}
    plain = {("200", "text/plain")} if path == "/metrics" else set()
    assert {each for each in types if each[1] != "application/json"} == plain


def test_every_response_has_one_kind_of_content() -> None:
    assert all(
        len(response["content"]) == 1
        for methods in DOCUMENT["paths"].values()
        for operation in methods.values()
        for response in operation["responses"].values()
    )


@pytest.mark.parametrize(
    ("settings", "needed"),
    [
        (Settings(), [{"bearer": []}, {}]),
        (Settings(token="x"), [{"bearer": []}]),
        (Settings(clients=(Client("ann", "0" * 64),)), [{"bearer": []}]),
    ],
)
def test_token_is_described_as_the_judge_needs_it(settings: Settings, needed: list[Any]) -> None:
    document = document_of(settings)
    assert document["security"] == needed
    assert document["components"]["securitySchemes"] == {"bearer": {"type": "http", "scheme": "bearer"}}


@pytest.mark.parametrize(("path", "operation"), OPERATIONS)
def test_supervisors_are_described_without_a_token(path: str, operation: dict[str, Any]) -> None:
    assert operation.get("security") == ([] if path in OPEN else None)


@pytest.mark.parametrize("path", ["/evaluate", "/v2/problem", "/v2/jobs"])
def test_name_for_the_queue_is_described(path: str) -> None:
    parameters = DOCUMENT["paths"][path]["post"]["parameters"]
    assert [(each["in"], each["required"]) for each in parameters if each["name"] == "X-Client"] == [
        ("header", False)
    ]
