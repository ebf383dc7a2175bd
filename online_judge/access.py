"""Who may ask, and how much: the bearer token, the loopback rule and the limit on bodies."""

from __future__ import annotations

import hmac
import ipaddress
from typing import TYPE_CHECKING

from fastapi.responses import JSONResponse

if TYPE_CHECKING:
    from fastapi import Request
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from online_judge.settings import Settings

OPEN_PATHS = ("/livez", "/readyz")
TOKEN_VARIABLE = "ADAEXPLORE_JUDGE_TOKEN"
_MAX_DISCARD_BYTES = 2**26
_MAX_CLIENT = 100


def is_loopback(host: str) -> bool:
    """Whether an address is this machine's own."""
    if host == "localhost":
        return True
    try:
        address = ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)


class Door:
    """ASGI middleware in front of everything; its settings are the application's."""

    def __init__(self, app: ASGIApp) -> None:
        """Stand before ``app``."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through or answer it here: 401, 403, 413."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        settings: Settings = scope["app"].state.settings
        refusal = _refusal(scope, settings.token)
        if refusal is not None:
            await refusal(scope, receive, send)
            return
        body = await _read(scope, receive, settings.max_body_bytes)
        if body is None:
            text = f"The body is larger than {settings.max_body_bytes} bytes (MAX_BODY_BYTES)"
            await JSONResponse({"detail": text}, 413, {"Connection": "close"})(scope, receive, send)
            return
        first: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def replay() -> Message:
            return first.pop() if first else await receive()

        await self._app(scope, replay, send)


def _refusal(scope: Scope, token: str | None) -> JSONResponse | None:
    if scope["path"] in OPEN_PATHS:
        return None
    if token is None:
        client = scope.get("client")
        if client is None or is_loopback(client[0]):
            return None
        text = f"This judge has no token and answers loopback only: start it with {TOKEN_VARIABLE}"
        return JSONResponse({"detail": text}, 403)
    given = [value for name, value in scope["headers"] if name == b"authorization"]
    scheme, _, credentials = (given[0] if len(given) == 1 else b"").partition(b" ")
    right = hmac.compare_digest(credentials.strip(), token.encode())
    if right and scheme.lower() == b"bearer":
        return None
    return JSONResponse(
        {"detail": f"A bearer token is needed: the judge's {TOKEN_VARIABLE}"},
        401,
        {"WWW-Authenticate": "Bearer"},
    )


async def _read(scope: Scope, receive: Receive, limit: int) -> bytes | None:
    """The body; None if it is too large, most of it read all the same so that the client hears the answer."""
    parts: list[bytes] = []
    size = 0
    while True:
        message = await receive()
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
    return b"".join(parts) if size <= limit else None


def client_of(request: Request) -> str:
    """Whose request it is where clients take turns: by ``X-Client``, else by address."""
    named = request.headers.get("x-client", "")
    return named[:_MAX_CLIENT] or (request.client.host if request.client is not None else "")
