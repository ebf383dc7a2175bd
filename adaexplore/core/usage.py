"""The cost of model requests."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Usage:
    """Cost of one or more requests."""

    input_tokens: int = 0  # tokens of the prompts, including cached ones
    cached_input_tokens: int = 0  # input tokens read from the service's prompt cache
    output_tokens: int = 0  # tokens written, reasoning included
    seconds: float = 0.0  # wall-clock seconds spent waiting for answers
    usd: float | None = 0.0  # price in US dollars; None if unknown; a sum with an unknown part is unknown
    # input tokens that the service wrote to its cache, if it counts them (Anthropic charges 125 % for them)
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
