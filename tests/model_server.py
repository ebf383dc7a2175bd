"""A small model service on loopback that speaks OpenAI's, Azure's and Anthropic's dialects.

    with ModelServer() as server:
        server.script(Fail(429, headers={"Retry-After": "0"}), Answer("hello"))
        client = build_client(Opening(RunConfig(base_url=server.openai_url), environment={}))

Scripted behaviours are used up in order, one a request; after them ``server.reply`` answers.
"""

from __future__ import annotations

import contextlib
import json
import re
import socket
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from tests.prompt_cache import LIFETIME_S, Hit, MarkedCache, PrefixCache, text_of


@dataclass(frozen=True)
class Answer:
    """A completion; ``finish`` is in the dialect's own words, ``message`` overrides OpenAI fields.

    ``blocks`` replaces Anthropic's content; ``hold`` is waited for before answering.
    """

    text: str | None = "ok"
    finish: str | None = None
    message: Mapping[str, Any] = field(default_factory=dict)
    blocks: tuple[Mapping[str, Any], ...] | None = None
    usage: Mapping[str, Any] | None = None
    model: str | None = None
    hold: threading.Event | None = None
    streamed: bool = True


@dataclass(frozen=True)
class Fail:
    """An error with the dialect's envelope."""

    status: int
    message: str = "no"
    param: str | None = None
    code: str | None = None
    type: str = "invalid_request_error"
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Raw:
    """Any bytes with any status; ``length`` promises more bytes than there are.

    ``pause_s`` is waited before each event of a stream.
    """

    body: str
    status: int = 200
    content_type: str = "application/json"
    length: int | None = None
    pause_s: float = 0.0


@dataclass(frozen=True)
class Cut:
    """The connection is closed without an answer."""


Behaviour = Answer | Fail | Raw | Cut


@dataclass(frozen=True)
class Received:
    """One received request; header names are in lower case."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]

    @property
    def prompt(self) -> str:
        return text_of(self.messages[0])

    @property
    def messages(self) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = self.body.get("messages") or self.body["input"]
        return found

    @property
    def length(self) -> int:
        return sum(len(text_of(message)) for message in self.messages)


class ModelServer:
    """The service; ``requests`` is all it received, in order.

    Attributes:
        reply: the answer's text for a prompt, once the script is used up.
        rejects: body fields answered with 400, with the error's code (None: only the message tells).
        api_key: with one, requests without it are answered with 401.
        caching: whether beginnings of prompts are cached, as each vendor does it.
        clock: seconds, for the life of what is cached.
    """

    def __init__(self, lifetime_s: float = LIFETIME_S) -> None:
        """``lifetime_s`` is how long the beginning of a prompt stays cached without being used."""
        self.requests: list[Received] = []
        self.reply: Callable[[str], str] = lambda prompt: "ok"
        self.rejects: dict[str, str | None] = {}
        self.api_key: str | None = None
        self.caching = False
        self.clock: Callable[[], float] = time.monotonic
        self._prefix_cache = PrefixCache(lifetime_s)
        self._marked_cache = MarkedCache(lifetime_s)
        self._script: deque[Behaviour] = deque()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), type("Handler", (_Handler,), {"service": self}))
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.02,), daemon=True)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._http.server_address[1]}"

    @property
    def openai_url(self) -> str:
        return f"{self.url}/v1"

    def script(self, *behaviours: Behaviour) -> None:
        self._script.extend(behaviours)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._http.shutdown()
        with self._lock:
            for connection in self._connections:
                with contextlib.suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
        self._http.server_close()
        self._thread.join()

    def _next(self, received: Received, openai: bool) -> tuple[Behaviour, Hit]:
        """Return the action, and the cache's use of the prompt."""
        with self._lock:
            self.requests.append(received)
            if self.api_key is not None and self.api_key not in received.headers.get(
                "authorization", received.headers.get("x-api-key", received.headers.get("api-key", ""))
            ):
                return Fail(401, "bad key", code="invalid_api_key", type="authentication_error"), Hit(0)
            for name, code in self.rejects.items():
                if name in received.body:
                    unsupported = f"Unsupported parameter: '{name}' is not supported."
                    return Fail(400, unsupported, name, code), Hit(0)
            behaviour = self._script.popleft() if self._script else Answer(self.reply(received.prompt))
            if not self.caching:
                return behaviour, Hit(0)
            cache = self._prefix_cache if openai else self._marked_cache
            try:
                return behaviour, cache.look_up(received.body, self.clock())
            except ValueError as error:
                return Fail(400, str(error)), Hit(0)


def tokens(characters: int) -> int:
    """How many tokens this service counts for so many characters."""
    return characters // 4


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    service: ModelServer

    def setup(self) -> None:
        super().setup()
        with self.service._lock:
            self.service._connections.add(self.connection)

    def finish(self) -> None:
        with self.service._lock:
            self.service._connections.discard(self.connection)
        super().finish()

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        headers = {name.lower(): value for name, value in self.headers.items()}
        received = Received(self.path, headers, body)
        path = self.path.partition("?")[0]
        openai = path.endswith(("/chat/completions", "/responses"))
        if not openai and not path.endswith("/v1/messages"):
            self._send(404, json.dumps({"detail": "Not Found"}))
            return
        behaviour, cached = self.service._next(received, openai)
        match behaviour:
            case Cut():
                self.close_connection = True
            case Raw():
                status, body, kind = behaviour.status, behaviour.body, behaviour.content_type
                self._send(status, body, kind, length=behaviour.length, pause_s=behaviour.pause_s)
            case Fail():
                self._send(behaviour.status, json.dumps(_error(behaviour, openai)), headers=behaviour.headers)
            case Answer():
                if behaviour.hold is not None:
                    behaviour.hold.wait(30)
                if path.endswith("/responses"):
                    self._send(200, json.dumps(_response(behaviour, received)))
                elif openai:
                    self._send(200, json.dumps(_completion(behaviour, received, cached)))
                elif received.body.get("stream") and behaviour.streamed:
                    events = "".join(
                        f"event: {event['type']}\ndata: {json.dumps(event)}\n\n"
                        for event in _events(behaviour, received, cached)
                    )
                    self._send(200, events, "text/event-stream")
                else:
                    self._send(200, json.dumps(_message(behaviour, received, cached)))

    def _send(
        self,
        status: int,
        body: str,
        content_type: str = "application/json",
        *,
        headers: Mapping[str, str] | None = None,
        length: int | None = None,
        pause_s: float = 0.0,
    ) -> None:
        data = body.encode()
        try:
            self.send_response(status)
            for name, value in (headers or {}).items():
                self.send_header(name, value)
            self.send_header("Content-Type", content_type)
            self.send_header("Content-Length", str(len(data) if length is None else length))
            self.end_headers()
            for part in re.findall(rb".*?\n\n", data, re.DOTALL) if pause_s else [data]:
                time.sleep(pause_s)
                self.wfile.write(part)
        except OSError:  # the client gave up waiting
            self.close_connection = True
        if length is not None:
            self.close_connection = True


def _error(fail: Fail, openai: bool) -> dict[str, Any]:
    if openai:
        return {"error": {"message": fail.message, "type": fail.type, "param": fail.param, "code": fail.code}}
    return {"type": "error", "error": {"type": fail.type, "message": fail.message}}


def _completion(answer: Answer, received: Received, cached: Hit) -> dict[str, Any]:
    prompt, output = tokens(received.length), tokens(len(answer.text or ""))
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached.read},
    }
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": answer.model or received.body["model"],
        "choices": [
            {
                "index": 0,
                "finish_reason": answer.finish or "stop",
                "message": {"role": "assistant", "content": answer.text, **answer.message},
            }
        ],
        "usage": usage if answer.usage is None else dict(answer.usage),
    }


def _response(answer: Answer, received: Received) -> dict[str, Any]:
    """Return a response as OpenAI sends it: reasoning first, then the message."""
    prompt, output = tokens(received.length), tokens(len(answer.text or ""))
    part: dict[str, Any] = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "status": "completed",
        "content": [part],
    }
    usage = {
        "input_tokens": prompt,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": prompt + output,
    }
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "error": None,
        "incomplete_details": None,
        "model": answer.model or received.body["model"],
        "output": [{"id": "rs_1", "type": "reasoning", "summary": []}, message],
        "service_tier": received.body.get("service_tier", "default"),
        "usage": usage if answer.usage is None else dict(answer.usage),
        **answer.message,
    }


def _message(answer: Answer, received: Received, cached: Hit) -> dict[str, Any]:
    blocks = answer.blocks
    if blocks is None:
        blocks = ({"type": "text", "text": answer.text},) if answer.text else ()
    usage = {
        "input_tokens": tokens(received.length) - cached.read - cached.written,
        "cache_read_input_tokens": cached.read,
        "cache_creation_input_tokens": cached.written,
        "output_tokens": tokens(len(answer.text or "")),
    }
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": answer.model or received.body["model"],
        "content": list(blocks),
        "stop_reason": answer.finish or "end_turn",
        "stop_sequence": None,
        "usage": usage if answer.usage is None else dict(answer.usage),
    }


def _events(answer: Answer, received: Received, cached: Hit) -> Iterator[dict[str, Any]]:
    """Yield the message as a stream: each block starts empty, then its text follows in two deltas."""
    message = _message(answer, received, cached)
    output = message["usage"].get("output_tokens", 0)
    started = {**message, "content": [], "stop_reason": None}
    started["usage"] = {**message["usage"], "output_tokens": 1}
    yield {"type": "message_start", "message": started}
    yield {"type": "ping"}
    for index, block in enumerate(message["content"]):
        kind = "thinking" if block["type"] == "thinking" else "text"
        content = block.get(kind, "")
        half = len(content) // 2
        yield {"type": "content_block_start", "index": index, "content_block": {**block, kind: ""}}
        for piece in (content[:half], content[half:]):
            yield {
                "type": "content_block_delta",
                "index": index,
                "delta": {"type": f"{kind}_delta", kind: piece},
            }
        yield {"type": "content_block_stop", "index": index}
    yield {
        "type": "message_delta",
        "delta": {"stop_reason": message["stop_reason"], "stop_sequence": None},
        "usage": {"output_tokens": output},
    }
    yield {"type": "message_stop"}
