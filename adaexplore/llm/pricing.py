"""What tokens cost at the vendors' list prices; an estimate, not a bill."""

from __future__ import annotations

import re
from dataclasses import dataclass

PRICES_AS_OF = "2026-11"

CACHE_WRITE_SURCHARGES = {"claude-": 0.25}
"""By how much of the input price a token written to the cache costs more, by the beginning of the name."""

_SNAPSHOT = re.compile(r"(-\d{4}-\d{2}-\d{2}|[-@]\d{8}|-latest)$")


@dataclass(frozen=True)
class Price:
    """US dollars per million tokens, standard service tier."""

    input: float
    cached: float
    output: float


_OPUS = Price(5.00, 0.50, 25.00)
_OPUS_4 = Price(15.00, 1.50, 75.00)
_SONNET = Price(3.00, 0.30, 15.00)
_FIRST_GPT_5 = Price(1.25, 0.125, 10.00)

# Models whose price depends on the length of the prompt are left out: unknown beats wrong.
PRICES: dict[str, Price] = {
    "gpt-5.5": Price(5.00, 0.50, 30.00),
    "gpt-5.4": Price(2.50, 0.25, 15.00),
    "gpt-5.4-mini": Price(0.75, 0.075, 4.50),
    "gpt-5.4-nano": Price(0.20, 0.02, 1.25),
    "gpt-5.2": Price(1.75, 0.175, 14.00),
    "gpt-5.1": _FIRST_GPT_5,
    "gpt-5.1-codex": _FIRST_GPT_5,
    "gpt-5": _FIRST_GPT_5,
    "gpt-5-chat": _FIRST_GPT_5,
    "gpt-5-mini": Price(0.25, 0.025, 2.00),
    "gpt-5-nano": Price(0.05, 0.005, 0.40),
    "gpt-4.1": Price(2.00, 0.50, 8.00),
    "gpt-4.1-mini": Price(0.40, 0.10, 1.60),
    "gpt-4.1-nano": Price(0.10, 0.025, 0.40),
    "gpt-4o": Price(2.50, 1.25, 10.00),
    "gpt-4o-2024-05-13": Price(5.00, 5.00, 15.00),
    "gpt-4o-mini": Price(0.15, 0.075, 0.60),
    "o1": Price(15.00, 7.50, 60.00),
    "o3": Price(2.00, 0.50, 8.00),
    "o3-mini": Price(1.10, 0.55, 4.40),
    "o4-mini": Price(1.10, 0.275, 4.40),
    "claude-fable-5": Price(10.00, 1.00, 50.00),
    "claude-fable-5-1": Price(10.00, 0.25, 50.00),
    "claude-opus-5-5": Price(4.00, 0.20, 20.00),
    "claude-opus-5": _OPUS,
    "claude-opus-4-8": _OPUS,
    "claude-opus-4-7": _OPUS,
    "claude-opus-4-6": _OPUS,
    "claude-opus-4-5": _OPUS,
    "claude-opus-4-1": _OPUS_4,
    "claude-opus-4": _OPUS_4,
    "claude-opus-4-0": _OPUS_4,
    "claude-sonnet-5-5": Price(2.00, 0.10, 10.00),
    "claude-sonnet-5": Price(2.00, 0.20, 10.00),
    "claude-sonnet-4-6": _SONNET,
    "claude-sonnet-4-5": _SONNET,
    "claude-sonnet-4": _SONNET,
    "claude-sonnet-4-0": _SONNET,
    "claude-3-7-sonnet": _SONNET,
    "claude-3-5-sonnet": _SONNET,
    "claude-haiku-4-5": Price(1.00, 0.10, 5.00),
    "claude-3-5-haiku": Price(0.80, 0.08, 4.00),
}


def price_of(model: str) -> Price | None:
    """The price of ``model`` or of the model that it is a dated snapshot of; None when unknown.

    Only dates and ``-latest`` are taken off a name, so ``gpt-5-mini-2025-08-07`` is priced as
    ``gpt-5-mini``, and a variant with a name of its own never as its namesake.
    """
    return PRICES.get(model) or PRICES.get(_SNAPSHOT.sub("", model))


def usd(
    model: str,
    *,
    input_tokens: int,
    cached_input_tokens: int,
    output_tokens: int,
    cache_write_tokens: int = 0,
) -> float | None:
    """List price of one request in US dollars; None for a model without a known price.

    Args:
        model: the model's name, dated or not.
        input_tokens: all tokens of the prompt, the cached ones included.
        cached_input_tokens: those read from the service's cache.
        output_tokens: tokens written, reasoning included.
        cache_write_tokens: those of the input tokens that were written to the service's cache.
    """
    price = price_of(model)
    if price is None:
        return None
    surcharge = next((by for name, by in CACHE_WRITE_SURCHARGES.items() if model.startswith(name)), 0.0)
    fresh = input_tokens - cached_input_tokens + surcharge * cache_write_tokens
    return (fresh * price.input + cached_input_tokens * price.cached + output_tokens * price.output) / 1e6
