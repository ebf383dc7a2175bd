"""OpenAI's chat completions, at OpenAI, on Azure, and at any server that speaks the same dialect."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from types import ModuleType
from typing import TYPE_CHECKING

from adaexplore.core.errors import ModelRequestError
from adaexplore.llm.protocol import Finish, ModelRequest
from adaexplore.llm.rejection import public_url, read_rejection, status_inside
from adaexplore.llm.retry import Retry, ServiceTrouble
from adaexplore.llm.sampling import SamplingParameters
from adaexplore.llm.service import (
    PLACEHOLDER_KEY,
    Answer,
    ServiceClient,
    Tokens,
    count,
    open_sdk,
    read_key,
    refuse_page,
)

if TYPE_CHECKING:
    import openai

AZURE_API_VERSION = "2024-12-01-preview"
CACHE_KEY = "prompt_cache_key"
"""The parameter that brings requests with a common beginning to the same cache."""

_FINISHES = {"length": Finish.CUT, "content_filter": Finish.REFUSED}


class OpenAIService:
    """Sends chat completions through the official SDK; its own retries are off."""

    def __init__(self, sdk: openai.OpenAI, model_name: str, key_variable: str) -> None:
        self._sdk = sdk
        self._model_name = model_name
        self.key_variable = key_variable
        self.address = public_url(str(sdk.base_url))

    def send(self, request: ModelRequest, parameters: Mapping[str, object]) -> Answer:
        """Send ``request`` once; see :class:`~adaexplore.llm.service.Service`."""
        import openai

        body = {name: value for name, value in parameters.items() if name != CACHE_KEY}
        opening = request.earlier[0] if request.earlier else request
        if CACHE_KEY in parameters and opening.cuts:
            task = request.key.partition("/")[0]
            body[CACHE_KEY] = _digest(f"{task}/{opening.prompt[: opening.cuts[0]]}")
        try:
            response = self._sdk.chat.completions.with_raw_response.create(
                model=self._model_name,
                messages=_messages(request),
                extra_body=body,
            ).http_response
        except openai.APITimeoutError:
            raise ServiceTrouble(f"no answer from {self.address} in time") from None
        except openai.APIConnectionError as error:
            cause = type(error.__cause__).__name__ if error.__cause__ else "connection error"
            raise ServiceTrouble(f"cannot reach {self.address} ({cause})") from None
        except openai.APIStatusError as error:
            raise read_rejection(
                error.status_code, error.body, headers=error.response.headers, secret=self._sdk.api_key
            ) from None
        refuse_page(response.headers, response.status_code)
        return self._read(response.text)

    def _read(self, body: str) -> Answer:
        try:
            data = json.loads(body)
        except ValueError:
            raise ServiceTrouble(f"{self.address} answered with something that is not JSON") from None
        if not isinstance(data, dict):
            raise ServiceTrouble(f"{self.address} answered with JSON that is not a completion")
        choices = data.get("choices")
        if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
            if data.get("error"):
                raise read_rejection(status_inside(data["error"]), data, secret=self._sdk.api_key)
            raise ServiceTrouble(f"{self.address} answered without choices")
        choice = choices[0]
        if choice.get("finish_reason") == "error":  # a router whose upstream failed half-way
            error = choice.get("error")
            raise read_rejection(status_inside(error), {"error": error}, secret=self._sdk.api_key)
        message = choice.get("message")
        message = message if isinstance(message, dict) else {}
        text, refusal = _text(message.get("content")), _text(message.get("refusal"))
        finish = (
            Finish.REFUSED if refusal else _FINISHES.get(str(choice.get("finish_reason")), Finish.COMPLETE)
        )
        model = data.get("model")
        return Answer(
            text=text or refusal,
            finish=finish,
            model=model if isinstance(model, str) and model else self._model_name,
            tokens=_tokens(data.get("usage")),
        )


def open_openai(
    model_name: str,
    *,
    base_url: str | None,
    sampling: SamplingParameters,
    retry: Retry,
    timeout_s: float,
    environment: Mapping[str, str] = os.environ,
) -> ServiceClient:
    """A client for OpenAI or, with ``base_url``, for any server that speaks its dialect.

    The key is ``OPENAI_API_KEY``; with a ``base_url`` (or ``OPENAI_BASE_URL``) it may be absent.

    Raises:
        ModelRequestError: no key, or the SDK is not installed.
    """
    sdk = _sdk()
    base_url = base_url or environment.get("OPENAI_BASE_URL") or None
    key = read_key(environment, "OPENAI_API_KEY")
    if key is None and base_url is None:
        raise ModelRequestError(
            "OPENAI_API_KEY is not set; set it, or set base_url to a server that needs no key"
        )
    client = open_sdk(
        sdk,
        "OpenAI",
        address=base_url,
        timeout_s=timeout_s,
        api_key=key or PLACEHOLDER_KEY,
        base_url=base_url,
    )
    return ServiceClient(OpenAIService(client, model_name, "OPENAI_API_KEY"), model_name, sampling, retry)


def open_azure(
    model_name: str,
    *,
    base_url: str | None,
    sampling: SamplingParameters,
    retry: Retry,
    timeout_s: float,
    environment: Mapping[str, str] = os.environ,
) -> ServiceClient:
    """A client for an Azure OpenAI deployment named ``model_name``.

    The endpoint is ``base_url`` or ``AZURE_OPENAI_ENDPOINT``, the key ``AZURE_API_KEY``.

    Raises:
        ModelRequestError: no endpoint, no key, or the SDK is not installed.
    """
    sdk = _sdk()
    endpoint = base_url or environment.get("AZURE_OPENAI_ENDPOINT")
    if not endpoint:
        raise ModelRequestError(
            "AZURE_OPENAI_ENDPOINT is not set; set it to https://<resource>.openai.azure.com"
        )
    key = read_key(environment, "AZURE_API_KEY")
    if key is None:
        raise ModelRequestError("AZURE_API_KEY is not set; set it to a key of the Azure OpenAI resource")
    client = open_sdk(
        sdk,
        "AzureOpenAI",
        address=endpoint,
        timeout_s=timeout_s,
        azure_endpoint=endpoint,
        api_version=AZURE_API_VERSION,
        api_key=key,
    )
    return ServiceClient(OpenAIService(client, model_name, "AZURE_API_KEY"), model_name, sampling, retry)


def _sdk() -> ModuleType:
    try:
        import openai
    except ImportError:
        raise ModelRequestError("the openai package is missing; install it: pip install openai") from None
    return openai


def _messages(request: ModelRequest) -> list[openai.types.chat.ChatCompletionMessageParam]:
    messages: list[openai.types.chat.ChatCompletionMessageParam] = []
    for turn in request.earlier:
        messages.append({"role": "user", "content": turn.prompt})
        messages.append({"role": "assistant", "content": turn.reply})
    messages.append({"role": "user", "content": request.prompt})
    return messages


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _text(content: object) -> str:
    """The text of a message's content: a string, or a list of parts of which some have text."""
    if isinstance(content, list):
        return "".join(_text(part.get("text")) for part in content if isinstance(part, dict))
    return content if isinstance(content, str) else ""


def _tokens(usage: object) -> Tokens | None:
    if not isinstance(usage, dict) or not usage:
        return None
    details = usage.get("prompt_tokens_details")
    prompt = count(usage.get("prompt_tokens"))
    details = details if isinstance(details, dict) else {}
    cached = min(count(details.get("cached_tokens")), prompt)
    written = min(count(details.get("cache_write_tokens")), prompt - cached)
    return Tokens(prompt, cached, count(usage.get("completion_tokens")), written)
