"""A client of a model service over HTTP: what OpenAI's and Anthropic's dialects have in common."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from ipaddress import ip_address
from types import ModuleType
from typing import Any, Protocol
from urllib.parse import urlsplit

from adaexplore.core.errors import ConfigError, ModelRequestError
from adaexplore.core.usage import Usage
from adaexplore.llm.pricing import usd
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest
from adaexplore.llm.rejection import Rejection, public_url
from adaexplore.llm.retry import Retry, ServiceTrouble
from adaexplore.llm.sampling import SamplingParameters

PLACEHOLDER_KEY = "no-key-needed"
CONNECT_TIMEOUT_S = 10.0


@dataclass(frozen=True)
class Tokens:
    """Token counts of one answer; ``cached`` and ``written`` (to the cache) are parts of ``input``."""

    input: int
    cached: int
    output: int
    written: int = 0


@dataclass(frozen=True)
class Answer:
    """One answer of a service; ``tokens`` is None where it did not count them.

    ``tier`` is the service tier that answered, where it says so.
    """

    text: str
    finish: Finish
    model: str
    tokens: Tokens | None
    tier: str | None = None


class Service(Protocol):
    """One way to talk to a model service."""

    @property
    def address(self) -> str:
        """Where it is, without secrets, for messages."""
        ...

    @property
    def key_variable(self) -> str:
        """The environment variable that its key comes from."""
        ...

    def send(self, request: ModelRequest, parameters: Mapping[str, object]) -> Answer:
        """Send ``request`` after what was said before it, once.

        Raises:
            Rejection: the service answered with an error.
            ServiceTrouble: no answer, or none that can be read.
        """
        ...


class ServiceClient:
    """A model behind a service; a :class:`~adaexplore.llm.protocol.ModelClient`.

    Args:
        service: how to talk to it.
        model_name: the model asked for, priced when the service names an unknown one.
        sampling: optional request fields, fitted to the model as it rejects them.
        retry: what to do about trouble that may pass.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        service: Service,
        model_name: str,
        sampling: SamplingParameters,
        retry: Retry,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._service = service
        self._model_name = model_name
        self._sampling = sampling
        self._retry = retry
        self._clock = clock

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request.

        Raises:
            ModelRequestError: the service refused it for good; the message says what to fix.
            ModelUnavailableError: no answer in spite of retries.
            Interrupted: asked to stop while waiting between attempts.
        """
        start = self._clock()
        answer = self._retry.call(lambda: self._ask(request))
        usage = self._usage(answer, self._clock() - start)
        return ModelReply(_storable(answer.text), answer.finish, usage, answer.model)

    def _ask(self, request: ModelRequest) -> Answer:
        while True:
            parameters = self._sampling.current()
            try:
                return self._service.send(request, parameters)
            except Rejection as rejection:
                if rejection.filtered:
                    return Answer(rejection.message, Finish.REFUSED, self._model_name, Tokens(0, 0, 0))
                if rejection.passes:
                    told = f": {rejection.message}" if rejection.message else ""
                    reason = f"{rejection.status} from {self._service.address}{told}"
                    raise ServiceTrouble(reason, rejection.retry_after_s) from None
                if not self._sampling.give_way(rejection, parameters):
                    raise ModelRequestError(
                        rejection.advice(
                            where=self._service.address,
                            model=self._model_name,
                            key_variable=self._service.key_variable,
                        )
                    ) from None

    def _usage(self, answer: Answer, seconds: float) -> Usage:
        if answer.tokens is None:
            return Usage(seconds=seconds, usd=None)
        counts = {
            "input_tokens": answer.tokens.input,
            "cached_input_tokens": answer.tokens.cached,
            "output_tokens": answer.tokens.output,
            "cache_write_tokens": answer.tokens.written,
        }
        price = usd(answer.model, **counts, tier=answer.tier)
        if price is None:
            price = usd(self._model_name, **counts, tier=answer.tier)
        return Usage(**counts, seconds=seconds, usd=price)


def _storable(text: str) -> str:
    """``text`` with halves of surrogate pairs joined or replaced: JSON can hold what UTF-8 cannot."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_key(environment: Mapping[str, str], variable: str) -> str | None:
    """The key in ``variable``, without surrounding white space; None when absent or blank.

    Raises:
        ModelRequestError: it holds characters that cannot travel in a header.
    """
    key = environment.get(variable, "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise ModelRequestError(f"{variable} holds characters that no key has; set it again without them")
    return key or None


def refuse_page(headers: Mapping[str, str], status: int) -> None:
    """Raise if a successful answer is a web page: no model service is at that address.

    Raises:
        Rejection: it is one.
    """
    if headers.get("content-type", "").startswith("text/html"):
        raise Rejection(status, "an HTML page")


def open_sdk(
    sdk: ModuleType, kind: str, *, address: str | None, timeout_s: float, **arguments: str | None
) -> Any:
    """A client of an official SDK, without retries of its own.

    Proxy settings of the environment hold for every server but those on this machine.

    Args:
        sdk: the ``openai`` or the ``anthropic`` module.
        kind: the name of the client's class in it.
        address: the server's URL; None for the vendor's.
        timeout_s: seconds of silence after which a request fails.
        **arguments: what else the class takes.

    Raises:
        ConfigError: the address is not a URL.
    """
    if address is not None and not _is_url(address):
        raise ConfigError(
            f"base_url '{public_url(address)}' is not a URL; it looks like http://localhost:8000/v1"
        )
    if address is not None and _on_this_machine(address):
        direct = {"http://": None, "https://": None, "all://": None}
        http = sdk.DefaultHttpxClient(trust_env=False, mounts=direct)
    else:
        http = sdk.DefaultHttpxClient()
    client = getattr(sdk, kind)(
        timeout=sdk.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S)),
        max_retries=0,
        http_client=http,
        **arguments,
    )
    weakref.finalize(client, http.close)
    return client


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False


def _on_this_machine(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def count(value: object) -> int:
    """A token count out of an answer; 0 for whatever is not one."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
