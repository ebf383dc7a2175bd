"""HTTP answers for errors, also those of the queue."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.exception_handlers import http_exception_handler
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from starlette.exceptions import HTTPException
from starlette.routing import Match

from adaexplore.core.errors import JudgeError
from online_judge.api.openapi import PATHS_WITH_422
from online_judge.queue.board import JournalBroken, KeyInUse
from online_judge.queue.evaluations import NoSuchDevice
from online_judge.queue.scheduler import QueueFull

RETRY_AFTER = {"Retry-After": "5"}
_CODES: dict[type[Exception], int] = {
    NoSuchDevice: 400,
    KeyInUse: 409,
    QueueFull: 429,
    JudgeError: 500,
    JournalBroken: 503,
}
_METHODS = ("DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")
_MAX_ECHO = 200
_MAX_ERRORS = 50


def add_handlers(application: FastAPI) -> None:
    application.add_exception_handler(RequestValidationError, _malformed)
    application.add_exception_handler(HTTPException, _http_error)
    for error in _CODES:
        application.add_exception_handler(error, _error_of_queue)


async def _error_of_queue(request: Request, error: Exception) -> JSONResponse:
    code = next(code for kind, code in _CODES.items() if isinstance(error, kind))
    if isinstance(error, QueueFull) and request.url.path.startswith("/evaluate"):
        code = 503  # v1's clients do not know 429
    headers = RETRY_AFTER if isinstance(error, QueueFull | JournalBroken) else None
    return JSONResponse({"detail": str(error)}, code, headers)


async def _malformed(request: Request, error: Exception) -> JSONResponse:
    assert isinstance(error, RequestValidationError)
    errors = [
        {
            "field": str(_echo(".".join(map(str, entry["loc"])))),
            "message": entry["msg"],
            "type": entry["type"],
            "input": _echo(entry.get("input")),
        }
        for entry in error.errors()[:_MAX_ERRORS]
    ]
    code = 422 if request.url.path.startswith(PATHS_WITH_422) else 400
    return JSONResponse({"detail": "Request validation failed", "errors": errors}, code)


def _echo(value: object) -> object:
    if isinstance(value, bool | int | None):
        return value
    text = value if isinstance(value, str) else repr(value)
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= _MAX_ECHO else f"{text[:_MAX_ECHO]}..."


async def _http_error(request: Request, error: Exception) -> Response:
    """Answer an HTTP error; a wrong method gets all methods of the path, not those of one route."""
    assert isinstance(error, HTTPException)
    if error.status_code == 405:
        allowed = [method for method in _METHODS if _is_served(request, method)]
        error = HTTPException(405, error.detail, headers={"Allow": ", ".join(allowed)})
    return await http_exception_handler(request, error)


def _is_served(request: Request, method: str) -> bool:
    scope = {**request.scope, "method": method}
    return any(route.matches(scope)[0] is Match.FULL for route in request.app.routes)
