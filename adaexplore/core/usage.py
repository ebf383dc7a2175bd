"""The cost of model requests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """Cost of one or more requests.

    Attributes:
        input_tokens: tokens of the prompts, including cached ones.
        cached_input_tokens: input tokens read from the service's prompt cache.
        output_tokens: tokens written, reasoning included.
        seconds: wall-clock seconds spent waiting for answers.
        usd: price in US dollars; None if unknown; a sum with an unknown part is unknown.
        cache_write_tokens: input tokens that the service wrote to its cache, if it counts them
            (Anthropic charges 125 % for them).
    """

    input_tokens: int = 0
    cached_input_tokens: int = 0
    output_tokens: int = 0
    seconds: float = 0.0
    usd: float | None = 0.0
    cache_write_tokens: int = 0

    def __add__(self, other: Usage) -> Usage:
        known = self.usd is not None and other.usd is not None
        return Usage(
            self.input_tokens + other.input_tokens,
            self.cached_input_tokens + other.cached_input_tokens,
            self.output_tokens + other.output_tokens,
            self.seconds + other.seconds,
            (self.usd or 0.0) + (other.usd or 0.0) if known else None,
            self.cache_write_tokens + other.cache_write_tokens,
        )
