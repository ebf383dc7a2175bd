"""The local web page: read-only, only for this machine."""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable

from fastapi import FastAPI, HTTPException, Request, Response
from fastapi.middleware.gzip import GZipMiddleware
from fastapi.middleware.trustedhost import TrustedHostMiddleware
from fastapi.responses import StreamingResponse

from adaexplore.view import pages
from adaexplore.view.model import Details
from adaexplore.view.sources import Watcher

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_SCRIPTS = ("htmx-2.min.js", "hx-sse-2.min.js", "view.js")
_ALIVE_S = 10.0


def make_app(watcher: Watcher) -> FastAPI:
    """Return the application that shows the runs of ``watcher``."""
    app = FastAPI(openapi_url=None, docs_url=None, redoc_url=None)
    app.add_middleware(TrustedHostMiddleware, allowed_hosts=["127.0.0.1", "localhost", "[::1]"])

    @app.middleware("http")
    async def guard(request: Request, forward: Callable[[Request], Awaitable[Response]]) -> Response:
        answer = await forward(request)
        answer.headers["Content-Security-Policy"] = POLICY
        answer.headers["X-Content-Type-Options"] = "nosniff"
        answer.headers["Referrer-Policy"] = "no-referrer"
        answer.headers["Cache-Control"] = "no-store"
        return answer

    @app.get("/")
    def overview() -> Response:
        return _html(pages.overview_page(watcher.shown))

    @app.get("/compare")
    def compare() -> Response:
        return _html(pages.compare_page(watcher.shown))

    @app.get("/memory")
    def memory() -> Response:
        return _html(pages.memory_page(watcher.shown))

    @app.get("/run/{number}/{key}")
    def task(number: int, key: str) -> Response:
        return _task(watcher, number, key, None)

    @app.get("/run/{number}/{key}/{step}")
    def node(number: int, key: str, step: int) -> Response:
        return _task(watcher, number, key, step)

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name == "view.css":
            return Response(pages.style(), media_type="text/css")
        if name not in _SCRIPTS:
            raise HTTPException(404, "there is no such file")
        return Response(pages.static_text(name), media_type="text/javascript")

    @app.get("/events")
    async def events() -> Response:
        return StreamingResponse(_events(watcher), media_type="text/event-stream")

    app.add_middleware(GZipMiddleware, compresslevel=1)
    return app


async def _events(watcher: Watcher) -> AsyncIterator[str]:
    """Send an event after each change, and regular comments to notice lost clients."""
    seen, spoken = watcher.version, time.monotonic()
    yield "retry: 1000\n\n"
    while True:
        await asyncio.sleep(0.25)
        if watcher.version != seen:
            seen, spoken = watcher.version, time.monotonic()
            yield f"event: changed\ndata: {seen}\n\n"
            await asyncio.sleep(0.5)
        elif time.monotonic() - spoken > _ALIVE_S:
            spoken = time.monotonic()
            yield ":\n\n"


def _task(watcher: Watcher, number: int, key: str, step: int | None) -> Response:
    runs = watcher.shown.runs
    run = runs[number] if 0 <= number < len(runs) else None
    task = None if run is None else run.task(key)
    if run is None or task is None:
        raise HTTPException(404, "there is no such task; go back to the overview")
    node = None if step is None else task.node(step)
    if step is not None and node is None:
        raise HTTPException(404, "there is no such step; go back to the task")
    details = Details() if step is None else watcher.sources[number].details(key, step)
    return _html(pages.task_page(run, number, task, node, details))


def _html(text: str) -> Response:
    return Response(text.encode("utf-8", "replace"), media_type="text/html; charset=utf-8")
