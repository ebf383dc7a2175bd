"""Anthropic's messages, streamed: the service drops long answers without streaming."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, cast

from adaexplore.core.text.json_text import parse_json
from adaexplore.core.usage import Usage
from adaexplore.llm.protocol import Finish, ModelRequest, Turn
from adaexplore.llm.rejection import Rejection, public_url, read_rejection, status_inside
from adaexplore.llm.retry import ServiceTrouble
from adaexplore.llm.service import (
    Answer,
    ServiceClient,
    count,
    http_libraries,
    mapping,
    marked_blocks,
    messages,
    open_vendor,
    refuse_page,
    sdk_errors,
)
from adaexplore.llm.vendors.vendor import Opening, Vendor

if TYPE_CHECKING:
    import anthropic

CACHE_CONTROL = "cache_control"
_KEY = "ANTHROPIC_API_KEY"

_FINISHES = {
    "max_tokens": Finish.CUT,
    "model_context_window_exceeded": Finish.CUT,
    "refusal": Finish.REFUSED,
}


class AnthropicService:
    """Messages, streamed through the official SDK; its own retries are off.

    Only the SDK's connection is used. The events are read here, so that other answers of a service are
    recognised, and a stream with only keep-alive events ends after ``timeout_s``.
    """

    def __init__(
        self, sdk: anthropic.Anthropic, model_name: str, *, max_tokens: int, timeout_s: float
    ) -> None:
        self._sdk = sdk
        self._model_name = model_name
        self._max_tokens = max_tokens
        self._timeout_s = timeout_s
        self._secret = sdk.api_key or ""
        self._transport_errors = _transport_errors()
        self.key_variable = _KEY
        self.address = public_url(str(sdk.base_url))

    def send(self, request: ModelRequest, parameters: Mapping[str, object]) -> Answer:
        body = {name: value for name, value in parameters.items() if name != CACHE_CONTROL}
        turns = cast("list[Any]", messages(request, _content, marked=CACHE_CONTROL in parameters))
        for turn in turns[1::2]:
            turn["content"] = turn["content"].rstrip()
        message = _Message(self._model_name)
        try:
            with (
                sdk_errors("anthropic", self.address, self._secret),
                self._sdk.messages.create(
                    model=self._model_name,
                    max_tokens=self._max_tokens,
                    messages=turns,
                    stream=True,
                    extra_body=body,
                ) as stream,
            ):
                refuse_page(stream.response.headers, stream.response.status_code)
                for event in self._events(stream.response):
                    if event.get("type") == "error":
                        raise read_rejection(status_inside(event.get("error")), event, secret=self._secret)
                    message.take(event)
                    if message.ended:  # a broken connection after it does not matter
                        return message.answer()
            raise ServiceTrouble(f"{self.address} answered without a complete message")
        except ServiceTrouble as trouble:
            raise ServiceTrouble(trouble.reason, trouble.retry_after_s, message.tokens()) from None
        except Rejection as rejection:
            raise replace(rejection, usage=message.tokens()) from None
        except self._transport_errors as error:
            reason = f"{self.address} broke off its answer ({type(error).__name__})"
            raise ServiceTrouble(reason, usage=message.tokens()) from None
        except ValueError:
            reason = f"{self.address} answered with something that is not JSON"
            raise ServiceTrouble(reason, usage=message.tokens()) from None

    def _events(self, response: Any) -> Iterator[dict[str, Any]]:
        """Yield the JSON objects of a server-sent event stream, or the object of a plain JSON answer."""
        if "json" in response.headers.get("content-type", ""):
            yield mapping(parse_json(response.read()))
            return
        rest = b""
        deadline = time.monotonic() + self._timeout_s
        for chunk in response.iter_bytes():
            if time.monotonic() > deadline:
                raise ServiceTrouble(f"no answer from {self.address} in time")
            *lines, rest = (rest + chunk).split(b"\n")  # text may hold what str treats as line ends
            for line in lines:
                if line.startswith(b"data:"):
                    event = mapping(parse_json(line.removeprefix(b"data:")))
                    if event.get("type") not in (None, "ping"):
                        deadline = time.monotonic() + self._timeout_s
                    yield event


@dataclass
class _Message:
    """An answer as far as it has arrived."""

    model: str
    texts: list[str] = field(default_factory=list)
    stop_reason: object = None
    usage: dict[str, Any] = field(default_factory=dict)
    ended: bool = False

    def take(self, event: Mapping[str, Any]) -> None:
        """Add an event of the stream."""
        match event.get("type"):
            case "message_start":
                started = mapping(event.get("message"))
                self.model = str(started.get("model") or self.model)
                self.usage.update(mapping(started.get("usage")))
            case "content_block_start":
                self.texts.append(_block_text(event.get("content_block")))
            case "content_block_delta":
                self.texts.append(_block_text(event.get("delta"), kind="text_delta"))
            case "message_delta":
                self.stop_reason = mapping(event.get("delta")).get("stop_reason")
                news = mapping(event.get("usage"))
                self.usage.update({name: value for name, value in news.items() if value is not None})
            case "message_stop":
                self.ended = True
            case "message":  # a service without streaming answers in one piece
                self.model = str(event.get("model") or self.model)
                blocks = event.get("content")
                self.texts.extend(map(_block_text, blocks if isinstance(blocks, list) else []))
                self.stop_reason, self.ended = event.get("stop_reason"), True
                self.usage.update(mapping(event.get("usage")))

    def answer(self) -> Answer:
        finish = _FINISHES.get(str(self.stop_reason), Finish.COMPLETE)
        return Answer("".join(self.texts), finish, self.model, self.tokens())

    def tokens(self) -> Usage | None:
        """Return the tokens counted so far; None if the service has counted none."""
        if not self.usage:
            return None
        cached = count(self.usage.get("cache_read_input_tokens"))
        written = count(self.usage.get("cache_creation_input_tokens"))
        prompt = count(self.usage.get("input_tokens")) + cached + written
        return Usage(prompt, cached, count(self.usage.get("output_tokens")), cache_write_tokens=written)


def _transport_errors() -> tuple[type[Exception], ...]:
    """Return the exceptions of a broken connection."""
    libraries = http_libraries()
    of_http = [error for library in libraries for error in (library.HTTPError, library.StreamError)]
    return (OSError, *of_http)


def _content(message: ModelRequest | Turn, marked: bool) -> str | list[dict[str, object]]:
    """Split the text at all cuts: the service looks for marks in a marked block and the 19 before it.

    A request may have four marks.
    """
    if not marked or not message.cuts:
        return message.prompt
    return marked_blocks(message.prompt, message.cuts, "text", {"cache_control": {"type": "ephemeral"}})


def _block_text(block: object, kind: str = "text") -> str:
    """Return the text of a content block or delta; thinking and tool blocks have none."""
    fields = mapping(block)
    text = fields.get("text")
    return text if fields.get("type") == kind and isinstance(text, str) else ""


def _open(opening: Opening) -> ServiceClient:
    config = opening.config
    advice = "set it to a key of your Anthropic account"
    sdk = open_vendor(
        "anthropic", "Anthropic", config.base_url, opening.timeout_s, opening.environment, advice
    )
    service = AnthropicService(
        sdk, config.model_name, max_tokens=config.max_completion_tokens, timeout_s=opening.timeout_s
    )
    effort = None if config.reasoning_effort is None else {"effort": config.reasoning_effort}
    parameters = {CACHE_CONTROL: "ephemeral", "temperature": config.temperature, "output_config": effort}
    return ServiceClient(service, config.model_name, parameters)


VENDOR = Vendor(
    names=("claude", "anthropic"),
    about="Anthropic (two names for the same)",
    needs=f"`{_KEY}`, or `base_url`",
    open=_open,
    cost="listed",
    names_model=True,
    variables=(_KEY,),
)
