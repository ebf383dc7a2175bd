"""Clients of a shared judge: their tokens and limits."""

import hashlib
import hmac
import re
from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from adaexplore.core.errors import ConfigError

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_HASH = re.compile(r"[0-9a-f]{64}")
_LIMITS = ("queued", "per_minute")
_MAX_LIMIT = 1_000_000
_WINDOW_S = 60.0


@dataclass(frozen=True)
class Client:
    """One line of the tokens file."""

    name: str = ""  # unique in the file; empty for the client with ``ADAEXPLORE_JUDGE_TOKEN``
    token_hash: str = ""  # SHA-256 of its token, in hex
    max_queued: int | None = None  # most waiting jobs; None for as many as the queue takes
    max_per_minute: int | None = None  # most requests in any 60 seconds; None for no limit


@dataclass(frozen=True)
class Caller:
    owner: str = ""  # whose jobs it sees and cancels; empty if the judge has no named clients
    client: str = ""  # name under which it takes turns in the queue
    max_queued: int | None = None  # see :class:`Client`


def read_clients(path: Path) -> tuple[Client, ...]:
    """Read the tokens file: a client a line, ``NAME SHA256 [queued=N] [per_minute=N]``, ``#`` for comments.

    Raises ConfigError with file and line.
    """
    try:
        lines = path.expanduser().read_text("utf-8").splitlines()
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(f"JUDGE_TOKENS {path} cannot be read ({error}); name another file") from error
    clients: list[Client] = []
    for number, line in enumerate(lines, 1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        try:
            clients.append(_client(words, clients))
        except ValueError as error:
            raise ConfigError(f"JUDGE_TOKENS {path}:{number}: {error}") from None
    if not clients:
        raise ConfigError(f"JUDGE_TOKENS {path}: no client; write NAME SHA256, one client a line")
    return tuple(clients)


def find_client(clients: Iterable[Client], token: bytes) -> Client | None:
    """Return the client with this token; wrong tokens take as long as right ones."""
    given = hashlib.sha256(token).hexdigest()
    found = [client for client in clients if hmac.compare_digest(client.token_hash, given)]
    return found[0] if found else None


class Rates:
    """Count the requests of each client over the last 60 seconds."""

    def __init__(self) -> None:
        self._asked: dict[str, deque[float]] = {}

    def wait_s(self, client: Client, now: float) -> float:
        """Count a request and return 0; over the limit, return the seconds to wait."""
        if client.max_per_minute is None:
            return 0.0
        asked = self._asked.setdefault(client.name, deque(maxlen=client.max_per_minute))
        if len(asked) == asked.maxlen and now - asked[0] < _WINDOW_S:
            return _WINDOW_S - (now - asked[0])
        asked.append(now)
        return 0.0


def _client(words: list[str], others: Iterable[Client]) -> Client:
    name, token_hash, *rest = [*words, ""] if len(words) == 1 else words
    if not _NAME.fullmatch(name):
        raise ValueError(f"{name!r} is no name: use up to 64 letters, digits, '.', '_' and '-'")
    if not _HASH.fullmatch(token_hash.lower()):
        raise ValueError(f"client {name} needs the SHA-256 of its token, 64 hexadecimal digits")
    limits: dict[str, int] = {}
    for word in rest:
        key, _, value = word.partition("=")
        if key not in _LIMITS or key in limits:
            raise ValueError(f"{word!r} is no limit, or given twice: use queued=N and per_minute=N")
        if not (value.isascii() and value.isdecimal() and 1 <= int(value[:10]) <= _MAX_LIMIT):
            raise ValueError(f"{word!r}: use a whole number from 1 to {_MAX_LIMIT}")
        limits[key] = int(value)
    client = Client(name, token_hash.lower(), limits.get("queued"), limits.get("per_minute"))
    for other in others:
        if client.name == other.name:
            raise ValueError(f"client {client.name} is there twice")
        if client.token_hash == other.token_hash:
            raise ValueError(f"clients {other.name} and {client.name} have the same token")
    return client
