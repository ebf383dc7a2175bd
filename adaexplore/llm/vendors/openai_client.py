"""OpenAI's responses API, and chat completions, which many other servers support too."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, cast

from adaexplore.core.text.json_text import parse_json
from adaexplore.core.usage import Usage
from adaexplore.llm.pricing import takes_breakpoints
from adaexplore.llm.protocol import Finish, ModelRequest, Turn
from adaexplore.llm.rejection import public_url, read_rejection, status_inside
from adaexplore.llm.retry import ServiceTrouble
from adaexplore.llm.service import (
    Answer,
    ServiceClient,
    count,
    mapping,
    marked_blocks,
    messages,
    open_vendor,
    refuse_page,
    sdk_errors,
)
from adaexplore.llm.vendors.vendor import Opening, Vendor
from adaexplore.settings.config import RunConfig

if TYPE_CHECKING:
    import httpx2
    import openai

CACHE_KEY = "prompt_cache_key"
"""The parameter that routes requests with a common prefix to the same cache."""
CACHE_OPTIONS = "prompt_cache_options"
"""The parameter that enables cache breakpoints at the end of prompt parts."""
_KEY = "OPENAI_API_KEY"

_FINISHES = {"length": Finish.CUT, "content_filter": Finish.REFUSED}


class OpenAIService:
    """Sends chat completions through the official SDK; its own retries are off."""

    def __init__(self, sdk: openai.OpenAI, model_name: str, key_variable: str) -> None:
        self._sdk = sdk
        self._model_name = model_name
        self.key_variable = key_variable
        self.address = public_url(str(sdk.base_url))

    def send(self, request: ModelRequest, parameters: Mapping[str, object]) -> Answer:
        body = {name: value for name, value in parameters.items() if name != CACHE_KEY}
        opening = request.earlier[0] if request.earlier else request
        if not opening.cuts:
            body.pop(CACHE_OPTIONS, None)
        elif CACHE_KEY in parameters:
            task = request.key.partition("/")[0]
            shared = f"{task}/{opening.prompt[: opening.cuts[0]]}"
            body[CACHE_KEY] = hashlib.blake2b(shared.encode(), digest_size=8).hexdigest()
        with sdk_errors("openai", self.address, self._sdk.api_key):
            answered = self._post(request, body)
        refuse_page(answered.headers, answered.status_code)
        try:
            data = parse_json(answered.text)
        except ValueError:
            raise ServiceTrouble(f"{self.address} answered with something that is not JSON") from None
        if not isinstance(data, dict):
            raise ServiceTrouble(f"{self.address} answered with JSON that is not a completion")
        return self._read(data)

    def _post(self, request: ModelRequest, body: Mapping[str, object]) -> httpx2.Response:
        turns = cast("list[Any]", messages(request, lambda message, _: message.prompt))
        completions = self._sdk.chat.completions.with_raw_response
        return completions.create(model=self._model_name, messages=turns, extra_body=body).http_response

    def _read(self, data: dict[str, Any]) -> Answer:
        choices = data.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            if data.get("error"):
                raise read_rejection(status_inside(data["error"]), data, secret=self._sdk.api_key)
            raise ServiceTrouble(f"{self.address} answered without choices")
        choice = choices[0]
        if choice.get("finish_reason") == "error":  # a router whose upstream failed during the answer
            error = choice.get("error")
            raise read_rejection(status_inside(error), {"error": error}, secret=self._sdk.api_key)
        message = mapping(choice.get("message"))
        text, refusal = _text(message.get("content")), _text(message.get("refusal"))
        finish = (
            Finish.REFUSED if refusal else _FINISHES.get(str(choice.get("finish_reason")), Finish.COMPLETE)
        )
        return self._answer(text or refusal, finish, data)

    def _answer(self, text: str, finish: Finish, data: Mapping[str, Any]) -> Answer:
        model, tier = data.get("model"), data.get("service_tier")
        return Answer(
            text=text,
            finish=finish,
            model=model if isinstance(model, str) and model else self._model_name,
            usage=_usage(data.get("usage")),
            tier=tier if isinstance(tier, str) else None,
        )


class ResponsesService(OpenAIService):
    """Responses that OpenAI does not store; with ``CACHE_OPTIONS`` prompts have cache breakpoints."""

    def _post(self, request: ModelRequest, body: Mapping[str, object]) -> httpx2.Response:
        turns = cast("Any", messages(request, _parts, marked=CACHE_OPTIONS in body))
        responses = self._sdk.responses.with_raw_response
        return responses.create(
            model=self._model_name, input=turns, store=False, extra_body=body
        ).http_response

    def _read(self, data: dict[str, Any]) -> Answer:
        if data.get("error"):
            raise read_rejection(status_inside(data["error"]), data, secret=self._sdk.api_key)
        output = data.get("output")
        if not isinstance(output, list) or data.get("status") not in ("completed", "incomplete"):
            raise ServiceTrouble(f"{self.address} answered without an output")
        messages = [item for item in output if isinstance(item, dict) and item.get("type") == "message"]
        contents = [item["content"] for item in messages if isinstance(item.get("content"), list)]
        parts = [part for content in contents for part in content if isinstance(part, dict)]
        text, refusal = ("".join(_text(part.get(kind)) for part in parts) for kind in ("text", "refusal"))
        finish = Finish.REFUSED if refusal else Finish.COMPLETE
        if data["status"] == "incomplete":
            reason = mapping(data.get("incomplete_details")).get("reason")
            finish = Finish.REFUSED if reason == "content_filter" else Finish.CUT
        return self._answer(text or refusal, finish, data)


def _parts(message: ModelRequest | Turn, marked: bool) -> list[dict[str, object]]:
    """Return the text as parts that later requests may share as a prefix, each with a breakpoint.

    A request may have four breakpoints: at the first two and the last two cuts.
    """
    cuts = message.cuts if marked else ()
    ends = sorted({*cuts[:2], *cuts[-2:]})
    mark = {"prompt_cache_breakpoint": {"mode": "explicit"}}
    return marked_blocks(message.prompt, ends, "input_text", mark)


def _text(content: object) -> str:
    """Return the text of a message's content: a string, or a list of parts, some with text."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _usage(usage: object) -> Usage | None:
    if not isinstance(usage, dict) or not usage:
        return None
    details = mapping(usage.get("prompt_tokens_details", usage.get("input_tokens_details")))
    prompt = count(usage.get("prompt_tokens", usage.get("input_tokens")))
    cached = min(count(details.get("cached_tokens")), prompt)
    written = min(count(details.get("cache_write_tokens")), prompt - cached)
    output = count(usage.get("completion_tokens", usage.get("output_tokens")))
    return Usage(prompt, cached, output, cache_write_tokens=written)


def chat_parameters(config: RunConfig) -> dict[str, object]:
    """Return the parameters of chat completions; those that are None are not sent."""
    return {
        "temperature": config.temperature,
        "service_tier": config.service_tier,
        "reasoning_effort": config.reasoning_effort,
        "max_completion_tokens": config.max_completion_tokens,
    }


def _response_parameters(config: RunConfig) -> dict[str, object]:
    effort = config.reasoning_effort
    return {
        CACHE_OPTIONS: {"mode": "explicit"} if takes_breakpoints(config.model_name) else None,
        "temperature": config.temperature,
        "service_tier": config.service_tier,
        "reasoning": None if effort is None else {"effort": effort},
        "max_output_tokens": config.max_completion_tokens,
    }


def _open(opening: Opening) -> ServiceClient:
    config, environment = opening.config, opening.environment
    api = config.openai_api
    if api == "auto":
        api = "chat" if config.base_url or environment.get("OPENAI_BASE_URL") else "responses"
    advice = "set it, set base_url to a server that needs no key"
    sdk = open_vendor("openai", "OpenAI", config.base_url, opening.timeout_s, environment, advice)
    kind = ResponsesService if api == "responses" else OpenAIService
    parameters = _response_parameters(config) if api == "responses" else chat_parameters(config)
    service = kind(sdk, config.model_name, _KEY)
    return ServiceClient(service, config.model_name, {CACHE_KEY: "one a task", **parameters})


VENDOR = Vendor(
    names=("openai",),
    about="OpenAI, or any server with its API",
    needs=f"`{_KEY}`, or `base_url`",
    open=_open,
    cost="listed",
    names_model=True,
    variables=(_KEY,),
    has_tiers=True,
)
