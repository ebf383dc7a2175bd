"""Bodies of answers other than verdicts, and the OpenAPI document with all errors."""

from __future__ import annotations

from typing import Any, Literal

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel

from adaexplore.core.wire import DeviceKind, QueueStatus
from online_judge.settings import Settings

SERVICE = "AdaExplore judge"
PATHS_WITH_422 = "/v2/jobs"
"""Start of the paths that answer a malformed request with 422; others answer with v1's 400."""
_OF_ACCESS = (401, 403, 408, 413, 429)
"""Codes that any request may get before an endpoint sees it."""
_HEADERS = {401: "WWW-Authenticate", 429: "Retry-After"}
"""Headers that every answer with this code has."""
_BEARER = "bearer"
NO_TOKEN: dict[str, Any] = {"security": []}
"""For ``openapi_extra``: the endpoint asks for no token."""
TURN: dict[str, Any] = {
    "parameters": [
        {
            "name": "X-Client",
            "in": "header",
            "required": False,
            "schema": {"type": "string"},
            "description": "Under which name the request takes turns in the queue; else by its address",
        }
    ]
}
"""For ``openapi_extra``: the endpoint queues an evaluation."""


class FieldError(BaseModel):
    """One fault of a request; ``field`` is its place, such as ``body.timeout``."""

    field: str
    message: str
    type: str
    input: str | bool | int | None


class Malformed(BaseModel):
    """Body of 400 (v1) and 422 (jobs)."""

    detail: Literal["Request validation failed"]
    errors: list[FieldError]


class Refusal(BaseModel):
    """Body of every other error: why, in one line."""

    detail: str


class Alive(BaseModel):
    """Answer of ``GET /livez``."""

    status: Literal["alive"]


class Readiness(BaseModel):
    """Answer of ``GET /readyz``; ``reason`` is present if the judge is not ready."""

    status: Literal["ready", "not ready"]
    reason: str = ""


class Root(BaseModel):
    """Answer of ``GET /``."""

    status: Literal["online"]
    service: str
    cuda_available: bool
    device_count: int
    available_gpus: list[int]
    gpu_allocation_mode: Literal["auto", "manual"]
    queue_status: QueueStatus


class DeviceHealth(BaseModel):
    """One GPU in ``GET /health``; sizes are bytes."""

    id: int
    name: str
    available: bool
    memory_total: int
    memory_allocated: int
    memory_reserved: int


class Health(BaseModel):
    """Answer of ``GET /health``; the fields about devices are present with CUDA.

    ``reason`` is present while a judge on a Ray cluster has no device: jobs wait.
    """

    status: Literal["healthy"]
    cuda_available: bool
    gpu_allocation_mode: Literal["auto", "manual"]
    judge_device: DeviceKind
    hardware: str
    compile_target: str
    sandbox: dict[str, Any] | None
    versions: dict[str, str | None]
    device_count: int = 0
    available_gpus: list[int] = []
    devices: list[DeviceHealth] = []
    queue_status: QueueStatus
    reason: str = ""


def refusals(*codes: int, malformed: int | None = None) -> dict[int | str, dict[str, Any]]:
    """Document the errors that an endpoint can answer with, besides those of access.

    ``malformed`` is the code of a malformed request; in ``codes`` it may have a body of one line as well.
    """
    found: dict[int | str, dict[str, Any]] = {code: {"model": Refusal} for code in (*_OF_ACCESS, *codes)}
    for code, name in _HEADERS.items():
        found[code]["headers"] = {name: {"required": True, "schema": {"type": "string"}}}
    if malformed is not None:
        found[malformed] = {"model": Malformed | Refusal if malformed in codes else Malformed}
    return found


def document(application: FastAPI) -> dict[str, Any]:
    """Return FastAPI's document with the errors and the access that are real."""
    if application.openapi_schema is None:
        found = get_openapi(title=application.title, version=application.version, routes=application.routes)
        for path, methods in found["paths"].items():
            for operation in methods.values():
                if not path.startswith(PATHS_WITH_422):
                    operation["responses"].pop("422", None)  # FastAPI's own form, which is never sent
        for name in ("HTTPValidationError", "ValidationError"):
            found["components"]["schemas"].pop(name, None)
        found["components"]["securitySchemes"] = {_BEARER: {"type": "http", "scheme": "bearer"}}
        application.openapi_schema = found
    settings: Settings | None = getattr(application.state, "settings", None)  # there from the start
    closed = settings is not None and (settings.token is not None or settings.clients)
    security: list[dict[str, Any]] = [{_BEARER: []}] if closed else [{_BEARER: []}, {}]
    return application.openapi_schema | {"security": security}
