"""Access control: bearer tokens, the loopback rule, request rates and the limit on bodies."""

from __future__ import annotations

import asyncio
import hmac
import ipaddress
import math
import time
from urllib.parse import urlsplit

from fastapi import Request
from fastapi.responses import JSONResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from adaexplore.core.errors import AdaExploreError
from online_judge.common.tokens import Caller, Client, Rates, find_client
from online_judge.settings import Settings

OPEN_PATHS = ("/livez", "/readyz")
TOKEN_VARIABLE = "ADAEXPLORE_JUDGE_TOKEN"
CLIENTS_VARIABLE = "JUDGE_TOKENS"
_MAX_DISCARD_BYTES = 2**26
_MAX_CLIENT = 100
PAUSE_S = 30.0
"""Longest pause in seconds between two parts of a body."""


def is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


class AccessControl:
    """ASGI middleware in front of everything; its settings are the application's."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self._rates = Rates()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through or answer it here: 401, 403, 408, 413, 429."""
        if scope["type"] == "lifespan":
            return await self._live(scope, receive, send)
        if scope["type"] != "http":
            return await self._app(scope, receive, send)
        settings: Settings = scope["app"].state.settings
        body = _refusal(scope, settings, self._rates) or await _read(receive, settings.max_body_bytes)
        if isinstance(body, JSONResponse):
            return await body(scope, receive, send)
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return first.pop() if first else await receive()

        return await self._app(scope, replay, send)

    async def _live(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Run the application's lifespan; report a deliberate failure of the start in one line."""
        failed: Message | None = None

        async def pass_on(message: Message) -> None:
            nonlocal failed
            if message["type"] == "lifespan.startup.failed":
                failed = message
            else:
                await send(message)

        try:
            await self._app(scope, receive, pass_on)
        except BaseException as error:
            if failed is None:
                raise
            scope["app"].state.failure = error
            line = str(error) if isinstance(error, AdaExploreError) else failed["message"]
            await send({"type": failed["type"], "message": line})
            raise


def _refused(code: int, why: str, headers: dict[str, str] | None = None) -> JSONResponse:
    return JSONResponse({"detail": why}, code, headers)


def _refusal(scope: Scope, settings: Settings, rates: Rates) -> JSONResponse | None:
    if scope["path"] in OPEN_PATHS:
        return None
    if settings.token is None and not settings.clients:
        return _refusal_without_token(scope)
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    scheme, _, credentials = (given[0] if len(given) == 1 else b"").partition(b" ")
    client = _known(settings, credentials.strip())
    if client is None or scheme.lower() != b"bearer":
        needed = f"one that its {CLIENTS_VARIABLE} lists" if settings.clients else f"its {TOKEN_VARIABLE}"
        return _refused(401, f"This judge needs a bearer token: {needed}", {"WWW-Authenticate": "Bearer"})
    scope.setdefault("state", {})["client"] = client
    wait_s = rates.wait_s(client, time.monotonic())
    if not wait_s:
        return None
    text = f"Client {client.name} may ask {client.max_per_minute} times a minute"
    return _refused(429, text, {"Retry-After": str(math.ceil(wait_s))})


def _refusal_without_token(scope: Scope) -> JSONResponse | None:
    """Refuse other machines, and browsers led here by foreign pages (their Host or Origin)."""
    client = scope.get("client")
    if client is None:
        return None
    if not is_loopback(client[0]):
        text = f"This judge has no token and answers loopback only: start it with {TOKEN_VARIABLE}"
        return _refused(403, text)
    for name, value in scope["headers"]:
        given = value.decode("latin-1")
        url = {b"host": f"//{given}", b"origin": given}.get(name)
        if url is not None and not _is_local(url):
            foreign = f"{name.decode().capitalize()} {given[:_MAX_CLIENT]!r}"
            text = (
                f"This judge has no token and answers requests to localhost only, not {foreign}: "
                f"address it as 127.0.0.1, or start it with {TOKEN_VARIABLE}"
            )
            return _refused(403, text)
    return None


def _known(settings: Settings, token: bytes) -> Client | None:
    """Return the client with this token; the client of ``ADAEXPLORE_JUDGE_TOKEN`` has no name."""
    client = find_client(settings.clients, token)
    right = settings.token is not None and hmac.compare_digest(token, settings.token.encode())
    return client or (Client() if right else None)


def _is_local(url: str) -> bool:
    try:
        return is_loopback(urlsplit(url).hostname or "")
    except ValueError:
        return False


async def _read(receive: Receive, limit: int) -> bytes | JSONResponse:
    """Return the body or a refusal; most of a large body is read, so that the client gets the refusal."""
    parts: list[bytes] = []
    size = 0
    while True:
        try:
            async with asyncio.timeout(PAUSE_S):
                message = await receive()
        except TimeoutError:
            return _refused(408, f"No part of the body arrived for {PAUSE_S:.0f} s", {"Connection": "close"})
        if message["type"] != "http.request":  # the client is gone
            break
        part = message.get("body", b"")
        size += len(part)
        if size <= limit:
            parts.append(part)
        else:
            parts.clear()
        if not message.get("more_body") or size > limit + _MAX_DISCARD_BYTES:
            break
    if size <= limit:
        return b"".join(parts)
    return _refused(413, f"The body is larger than {limit} bytes (MAX_BODY_BYTES)", {"Connection": "close"})


def client_of(request: Request) -> Caller:
    """Return the owner of a request: by its token if the judge has named clients.

    Otherwise all requests have one owner, and take turns by ``X-Client``, else by address.
    """
    settings: Settings = request.app.state.settings
    if settings.clients:
        client: Client = request.state.client
        return Caller(client.name, client.name, client.max_queued)
    named = request.headers.get("x-client", "")
    return Caller(client=named[:_MAX_CLIENT] or (request.client.host if request.client is not None else ""))
