"""Interpret a service's error answers, with advice for the user."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from adaexplore.core.usage import Usage
from adaexplore.llm.retry import retry_after_s

_MESSAGE_LIMIT = 300
_KEY_LIKE = re.compile(r"\b(sk[-_ ]|key[-_]|key (?=\S*[\d*])|Bearer[-_ ])[\w*.-]{5,}[\w*-]")
_PASSING = frozenset({408, 409, 429})
_NO_CREDIT = frozenset(
    {"insufficient_quota", "billing_hard_limit_reached", "billing_not_active", "billing_error"}
)
_FILTER_CODES = frozenset(
    {
        "content_filter",
        "content_policy_violation",
        "invalid_prompt",
        "bio_policy",
        "misalignment_policy_violation",
    }
)
_TOO_LONG = re.compile(r"context[ _](length|window|size|limit)|(prompt|input) is too long", re.IGNORECASE)
_STATUS_OF_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "timeout_error": 504,
    "overloaded_error": 529,
}


@dataclass(eq=False)
class Rejection(Exception):
    """An error answer of a model service, with keys masked.

    Attributes:
        status: the HTTP status, also if the error came inside a 200.
        message: the service's message in one line.
        parameter: the request field it names, if any.
        code: the service's code for the cause, if any.
        retry_after_s: the wait it asks for, if any.
        usage: tokens that it counted before the error, which came inside an answer.
    """

    status: int
    message: str
    parameter: str | None = None
    code: str | None = None
    retry_after_s: float | None = None
    usage: Usage | None = None

    @property
    def out_of_credit(self) -> bool:
        """Whether the account has no credit left."""
        return self.status == 402 or self.code in _NO_CREDIT

    @property
    def passes(self) -> bool:
        """Whether a retry may help."""
        return (self.status in _PASSING or self.status >= 500) and not self.out_of_credit

    @property
    def filtered(self) -> bool:
        """Whether a content filter refused the prompt: an outcome of the step, not an error."""
        by_words = "content filtering policy" in self.message and self.status == 400
        return self.code in _FILTER_CODES or by_words

    @property
    def too_long(self) -> bool:
        """Whether prompt and answer together exceed the model's context."""
        told = _TOO_LONG.search(f"{self.message} {self.code}") is not None
        return self.status == 413 or (self.status in (400, 422) and told)

    def advice(self, *, where: str, model: str, key_variable: str) -> str:
        """Describe in one line what happened and what to change."""
        told = f" ({self.message})" if self.message else ""
        if self.out_of_credit:
            return f"{self.status} from {where}: no credit left; add some or change {key_variable}{told}"
        if self.status in (401, 403):
            return f"{self.status} from {where}: check {key_variable}{told}"
        if self.status == 404 or self.code == "model_not_found":
            return f"{self.status}: model '{model}' not found at {where}; set model_name or base_url{told}"
        if self.too_long or re.search(r"max_(completion_)?tokens", self.message):
            return (
                f"{self.status} from {where}: lower max_completion_tokens or the length of the prompts{told}"
            )
        if self.status in (400, 413, 422):
            return f"{self.status} from {where}: the request was refused{told}"
        return f"{self.status} from {where}: not an answer of a model service; check base_url{told}"


def read_rejection(
    status: int, body: object, *, headers: Mapping[str, str] | None = None, secret: str = ""
) -> Rejection:
    """Read an error answer of any of the dialects in use.

    ``body`` is the decoded JSON, also in an ``error`` envelope, or the text; header names are
    case-insensitive; ``secret``, the key in use, is masked in the message.
    """
    error = body
    if isinstance(error, Mapping) and error.get("error"):
        error = error["error"]
    fields: Mapping[str, object] = error if isinstance(error, Mapping) else {"message": error}
    kind, code = _text(fields.get("type")), _text(fields.get("code"))
    if kind in _NO_CREDIT:
        code = kind
    message = fields.get("message") or fields.get("detail") or ""
    return Rejection(
        status=status,
        message=_one_line(message, secret),
        parameter=_text(fields.get("param")),
        code=code,
        retry_after_s=None if headers is None else retry_after_s(headers),
    )


def status_inside(error: object) -> int:
    """Return the status of an error inside a successful response: by its code, its type, else 500."""
    if not isinstance(error, Mapping):
        return 500
    code = str(error.get("code", ""))
    if code.isdigit() and 400 <= int(code) < 600:
        return int(code)
    return _STATUS_OF_TYPE.get(str(error.get("type", "")), 500)


def public_url(url: str) -> str:
    """Return ``url`` without the parts that may hold secrets: user, password, query."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port else ""
    except ValueError:
        return "(unreadable)"
    if not parts.netloc:
        return url.partition("?")[0]
    return f"{parts.scheme}://{parts.hostname or ''}{port}{parts.path}".rstrip("/")


def _text(value: object) -> str | None:
    return None if value is None or value == "" else str(value)


def _one_line(message: object, secret: str) -> str:
    text = message if isinstance(message, str) else json.dumps(message, default=str)
    if secret:
        text = text.replace(secret, "***")
    text = _KEY_LIKE.sub("***", text)
    if re.match(r"\s*(<!doctype|<html)", text, re.IGNORECASE):
        return "an HTML page"
    text = " ".join(text.split())
    return text if len(text) <= _MESSAGE_LIMIT else text[: _MESSAGE_LIMIT - 3] + "..."
