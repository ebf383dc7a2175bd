"""Estimate the tokens of a text without a tokenizer."""

BYTES_PER_TOKEN = 4


def estimate_tokens(text: str) -> int:
    """Estimate one token per four bytes of UTF-8, rounded up."""
    return -(-len(text.encode("utf-8", "surrogatepass")) // BYTES_PER_TOKEN)
