"""Split a search's billed input tokens by cause, and find the minimum over all orders of kernels."""

import re
from collections.abc import Iterator
from itertools import pairwise

from adaexplore.llm.protocol import ModelRequest, Turn

CACHED = 0.1
CHARACTERS = 4
"""Characters per token in the model server's count."""

_NUMBER = re.compile(r"\A(?:## Kernels so far\n)?### Kernel \d+\n")


class Causes:
    """Adds up the bill of one search in layout ``shared``, text by text, in billed tokens.

    Attributes:
        billed: ``cached``: text read from the cache, at a tenth. ``new``: kernels that the model has not seen
            yet. ``forgotten``: kernels sent so long ago that no cache keeps them. ``again``: kernels that a
            cache may hold, but after other text than now (and the rest that the cache's step of 128 tokens
            leaves out). ``other``: all other text that is not read from the cache.
        least: the bill if all text sent within the cache's lifetime were read from it, in any order.
    """

    def __init__(self, lifetime_s: float) -> None:
        self.billed = dict.fromkeys(("cached", "new", "forgotten", "again", "other"), 0.0)
        self.least = 0.0
        self.lifetime_s = lifetime_s
        self._sent: dict[str, float] = {}

    def add(self, request: ModelRequest, read_tokens: int, now_s: float) -> None:
        """Add a request; the service had ``read_tokens`` of it in its cache."""
        left = read_tokens * CHARACTERS
        for text, is_kernel in _parts(request):
            read = min(len(text), left)
            left -= read
            key = _NUMBER.sub("", text)
            last = self._sent.get(key)
            alive = last is not None and now_s - last <= self.lifetime_s
            seen = "new" if last is None else "again" if alive else "forgotten"
            self.billed["cached"] += CACHED * read / CHARACTERS
            self.billed[seen if is_kernel else "other"] += (len(text) - read) / CHARACTERS
            self.least += (CACHED if alive else 1.0) * len(text) / CHARACTERS
            self._sent[key] = now_s


def _parts(request: ModelRequest) -> Iterator[tuple[str, bool]]:
    """Return the texts of a conversation in their order, and whether each is a kernel with its verdict."""
    turns: tuple[Turn | ModelRequest, ...] = (*request.earlier, request)
    for turn in turns:
        ends = (0, *turn.cuts, len(turn.prompt))
        for place, (start, end) in enumerate(pairwise(ends)):
            yield turn.prompt[start:end], 2 <= place < len(turn.cuts)
        if isinstance(turn, Turn):
            yield turn.reply, False
