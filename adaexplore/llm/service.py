"""A client of a model service over HTTP: the common part of OpenAI's and Anthropic's APIs."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.util import find_spec
from ipaddress import ip_address
from itertools import pairwise
from types import ModuleType
from typing import Any, Protocol
from urllib.parse import urlsplit

from adaexplore.core.errors import ConfigError, ModelRequestError
from adaexplore.core.usage import Usage
from adaexplore.llm.pricing import usd
from adaexplore.llm.protocol import Finish, ModelReply, ModelRequest, Turn
from adaexplore.llm.rejection import Rejection, public_url, read_rejection
from adaexplore.llm.retry import ServiceTrouble
from adaexplore.llm.sampling import SamplingParameters
from adaexplore.settings.config import is_address

PLACEHOLDER_KEY = "no-key-needed"
CONNECT_TIMEOUT_S = 10.0
_MOST_TOKENS = 2**53


@dataclass(frozen=True)
class Answer:
    """One answer of a service.

    ``usage`` has its tokens alone, None if the service did not count them; ``tier`` is the service tier that
    answered, if it says so.
    """

    text: str
    finish: Finish
    model: str
    usage: Usage | None
    tier: str | None = None


class Service(Protocol):
    """The API of a model service."""

    @property
    def address(self) -> str:
        """Its address without secrets, for messages."""

    @property
    def key_variable(self) -> str:
        """The environment variable of its key."""

    def send(self, request: ModelRequest, parameters: Mapping[str, object]) -> Answer:
        """Send ``request`` once, after its earlier turns.

        Raises:
            Rejection: the service answered with an error.
            ServiceTrouble: no answer, or an unreadable one.
        """


class ServiceClient:
    """A model behind a service, asked once per request.

    Args:
        model_name: the requested model; its price holds if the service names an unknown one.
        parameters: optional request fields, adapted to the model as it rejects them; None is not sent.
    """

    def __init__(self, service: Service, model_name: str, parameters: Mapping[str, object]) -> None:
        self._service = service
        self._model_name = model_name
        given = {name: value for name, value in parameters.items() if value is not None}
        self._sampling = SamplingParameters(model_name, given)

    def complete(self, request: ModelRequest) -> ModelReply:
        """Answer one request.

        Raises:
            ModelRequestError: the service refused it for good; the message says what to fix.
            ServiceTrouble: no answer, or an unreadable one.
        """
        start = time.monotonic()
        try:
            answer = self._ask(request)
        except ServiceTrouble as trouble:
            spent = self._lost(trouble.usage, time.monotonic() - start)
            raise ServiceTrouble(trouble.reason, trouble.retry_after_s, spent) from None
        usage = self._usage(answer, time.monotonic() - start)
        return ModelReply(_storable(answer.text), answer.finish, usage, answer.model)

    def _ask(self, request: ModelRequest) -> Answer:
        while True:
            parameters = self._sampling.current()
            try:
                return self._service.send(request, parameters)
            except Rejection as rejection:
                if rejection.filtered:
                    spent = rejection.usage or Usage()
                    return Answer(rejection.message, Finish.REFUSED, self._model_name, spent)
                if rejection.too_long and request.earlier:  # only the conversation outgrew the context
                    return Answer(rejection.message, Finish.CUT, self._model_name, Usage())
                if rejection.passes:
                    told = f": {rejection.message}" if rejection.message else ""
                    reason = f"{rejection.status} from {self._service.address}{told}"
                    raise ServiceTrouble(reason, rejection.retry_after_s, rejection.usage) from None
                if not self._sampling.give_way(rejection, parameters):
                    raise ModelRequestError(
                        rejection.advice(
                            where=self._service.address,
                            model=self._model_name,
                            key_variable=self._service.key_variable,
                        )
                    ) from None

    def _lost(self, tokens: Usage, seconds: float) -> Usage:
        """Return the cost of an attempt that failed, which is none before the service counts tokens."""
        price = 0.0 if tokens == Usage() else usd(self._model_name, tokens)
        return replace(tokens, seconds=seconds, usd=price)

    def _usage(self, answer: Answer, seconds: float) -> Usage:
        if answer.usage is None:
            return Usage(seconds=seconds, usd=None)
        price = usd(answer.model, answer.usage, answer.tier)
        if price is None:
            price = usd(self._model_name, answer.usage, answer.tier)
        return replace(answer.usage, seconds=seconds, usd=price)


def _storable(text: str) -> str:
    """Join surrogate pairs in ``text`` and replace lone ones: JSON can hold what UTF-8 cannot."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def read_key(environment: Mapping[str, str], variable: str) -> str | None:
    """Read the key in ``variable``, without surrounding white space; None if missing or blank.

    Raises:
        ModelRequestError: the key holds characters that a header cannot contain.
    """
    key = environment.get(variable, "").strip()
    if not all("!" <= character <= "~" for character in key):
        raise ModelRequestError(f"{variable} holds characters that no key has; set it again without them")
    return key or None


def refuse_page(headers: Mapping[str, str], status: int) -> None:
    """Raise if a successful answer is a web page: there is no model service at that address.

    Raises:
        Rejection: the answer is a web page.
    """
    if headers.get("content-type", "").startswith("text/html"):
        raise Rejection(status, "an HTML page")


@contextmanager
def sdk_errors(name: str, address: str, secret: str) -> Iterator[None]:
    """Translate the errors of an official SDK; ``secret``, the key in use, is masked in messages.

    Raises:
        Rejection: the service answered with an error.
        ServiceTrouble: no answer.
    """
    sdk = import_sdk(name)
    try:
        yield
    except sdk.APITimeoutError:
        raise ServiceTrouble(f"no answer from {address} in time") from None
    except sdk.APIConnectionError as error:
        cause = type(error.__cause__).__name__ if error.__cause__ else "connection error"
        what = "cannot reach" if cause.startswith("Connect") else "no complete answer from"
        raise ServiceTrouble(f"{what} {address} ({cause})") from None
    except sdk.APIStatusError as error:
        headers = error.response.headers
        raise read_rejection(error.status_code, error.body, headers=headers, secret=secret) from None


def messages(
    request: ModelRequest, content: Callable[[ModelRequest | Turn, bool], object], *, marked: bool = False
) -> list[dict[str, object]]:
    """Return a conversation as messages with the ``content`` of each user's message.

    If ``marked``, these get cache marks, except the request after earlier turns.
    """
    turns: list[dict[str, object]] = []
    for turn in request.earlier:
        turns.append({"role": "user", "content": content(turn, marked)})
        turns.append({"role": "assistant", "content": turn.reply})
    turns.append({"role": "user", "content": content(request, marked and not request.earlier)})
    return turns


def marked_blocks(
    text: str, cuts: Sequence[int], kind: str, mark: Mapping[str, object]
) -> list[dict[str, object]]:
    """Split ``text`` at its cuts; blocks that end at the first two and the last two cuts carry ``mark``."""
    ends = {*cuts[:2], *cuts[-2:]}
    return [
        {"type": kind, "text": text[start:end], **(mark if end in ends else {})}
        for start, end in pairwise((0, *cuts, len(text)))
        if start < end
    ]


def import_sdk(name: str) -> ModuleType:
    """Import an official SDK: ``openai`` or ``anthropic``.

    Raises:
        ModelRequestError: it is not installed.
    """
    try:
        return import_module(name)
    except ImportError:
        raise ModelRequestError(f"the {name} package is missing; install it: pip install {name}") from None


def http_libraries() -> list[ModuleType]:
    """Return the libraries that the SDKs may use for HTTP; which one depends on their versions."""
    return [import_module(name) for name in ("httpx", "httpx2") if find_spec(name) is not None]


def not_set(variable: str, advice: str) -> ModelRequestError:
    """Return the error of a missing variable, with ``advice`` and the way without a model."""
    return ModelRequestError(f"{variable} is not set; {advice}, or use --offline, which needs no key")


def open_vendor(
    name: str, kind: str, base_url: str | None, timeout_s: float, environment: Mapping[str, str], advice: str
) -> Any:
    """Open an SDK's client for its vendor or, with ``base_url``, for any server with the same API.

    The variables are ``<NAME>_API_KEY``, which may be missing with an address, and ``<NAME>_BASE_URL``.

    Raises:
        ModelRequestError: no key, with ``advice``, or the SDK is not installed.
    """
    variable = f"{name.upper()}_API_KEY"
    address = base_url or environment.get(f"{name.upper()}_BASE_URL") or None
    key = read_key(environment, variable)
    if key is None and address is None:
        raise not_set(variable, advice)
    key = key or PLACEHOLDER_KEY
    return open_sdk(name, kind, address=address, timeout_s=timeout_s, api_key=key, base_url=address)


def open_sdk(name: str, kind: str, *, address: str | None, timeout_s: float, **arguments: str | None) -> Any:
    """Open a client of an official SDK, without its own retries.

    Proxy settings of the environment hold for every server except those on this machine. A request fails
    after ``timeout_s`` of silence. ``kind`` is the client's class in the SDK; ``address`` is None for the
    vendor's.

    Raises:
        ConfigError: the address is not a URL, or the proxy settings cannot be used.
        ModelRequestError: the SDK is not installed.
    """
    sdk = import_sdk(name)
    if address is not None and not is_address(address):
        raise ConfigError(
            f"base_url '{public_url(address)}' is not a URL; it looks like http://localhost:8000/v1"
        )
    if address is not None and _on_this_machine(address):
        direct = {"http://": None, "https://": None, "all://": None}
        http = sdk.DefaultHttpxClient(trust_env=False, mounts=direct)
    else:
        http = _open_http(sdk)
    client = getattr(sdk, kind)(
        timeout=sdk.Timeout(timeout_s, connect=min(timeout_s, CONNECT_TIMEOUT_S)),
        max_retries=0,
        http_client=http,
        **arguments,
    )
    weakref.finalize(client, http.close)
    return client


def _open_http(sdk: ModuleType) -> Any:
    """Open a connection through the environment's proxies; errors do not show their passwords."""
    unreadable = (ValueError, *(library.InvalidURL for library in http_libraries()))
    try:
        return sdk.DefaultHttpxClient()
    except ImportError:
        raise ConfigError(
            "ALL_PROXY, HTTPS_PROXY or HTTP_PROXY names a SOCKS proxy; install socksio: pip install socksio"
        ) from None
    except unreadable:
        raise ConfigError(
            "ALL_PROXY, HTTPS_PROXY, HTTP_PROXY or NO_PROXY cannot be read; a proxy looks like "
            "http://proxy:3128, and NO_PROXY like localhost,::1,.example.com"
        ) from None


def _on_this_machine(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def mapping(value: object) -> dict[str, Any]:
    """Read a JSON object of an answer; empty for anything else."""
    return value if isinstance(value, dict) else {}


def count(value: object) -> int:
    """Read a token count of an answer; 0 for anything else."""
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= _MOST_TOKENS:
        return value
    return 0
