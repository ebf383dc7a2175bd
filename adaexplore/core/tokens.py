"""How many tokens a text takes, where no tokenizer is at hand."""

from __future__ import annotations

BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """A rough count: a token for every four bytes of UTF-8, begun ones included."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
