"""How model services cache the beginnings of prompts: what is read, what is written, for how long.

Tokens are characters / 4, as :mod:`tests.model_server` counts them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

LIFETIME_S = 300.0
"""Anthropic's, and the shortest of OpenAI's; every use begins it anew."""
LEAST_TOKENS = 1024
STEP_TOKENS = 128
LOOKBACK = 20


@dataclass(frozen=True)
class Hit:
    """Tokens of one request that came out of the cache, and those that went into it."""

    read: int
    written: int = 0


class PrefixCache:
    """OpenAI's: every request is kept, and its beginning found in steps of 128 tokens, from 1024 on."""

    def __init__(self, lifetime_s: float = LIFETIME_S) -> None:
        self._lifetime_s = lifetime_s
        self._seen: dict[str, float] = {}

    def look_up(self, body: Mapping[str, Any], now_s: float) -> Hit:
        """Return the cached part of the request, and cache the request."""
        whole = "\x00".join(f"{message['role']}\x01{text_of(message)}" for message in body["messages"])
        alive = {text: used for text, used in self._seen.items() if now_s - used <= self._lifetime_s}
        shared = {text: _common(whole, text) for text in alive}
        best = max(shared.values(), default=0)
        for text, length in shared.items():
            if length == best > 0:
                alive[text] = now_s
                break
        self._seen = {**alive, whole: now_s}
        tokens = best // 4
        return Hit(tokens // STEP_TOKENS * STEP_TOKENS if tokens >= LEAST_TOKENS else 0)


class MarkedCache:
    """Anthropic's: written where a block is marked, found there or in the 19 blocks before."""

    def __init__(self, lifetime_s: float = LIFETIME_S) -> None:
        self._lifetime_s = lifetime_s
        self._entries: dict[tuple[str, ...], float] = {}

    def look_up(self, body: Mapping[str, Any], now_s: float) -> Hit:
        """Return the parts of the request that are read and written.

        Raises:
            ValueError: more than four marks, which the service refuses.
        """
        blocks, marks = _blocks(body["messages"])
        if len(marks) > 4:
            raise ValueError("A maximum of 4 blocks with cache_control may be provided.")
        ends = [sum(len(text) for _, text in blocks[: index + 1]) // 4 for index in range(len(blocks))]
        keys = [
            tuple(f"{role}\x01{text}" for role, text in blocks[: index + 1]) for index in range(len(blocks))
        ]
        found = next((index for mark in reversed(marks) for index in self._before(mark, keys, now_s)), None)
        read = 0 if found is None else ends[found]
        cached = [mark for mark in marks if ends[mark] >= LEAST_TOKENS]
        for index in [*cached, *([] if found is None else [found])]:
            self._entries[keys[index]] = now_s
        return Hit(read, max(ends[cached[-1]] - read, 0) if cached else 0)

    def _before(self, mark: int, keys: Sequence[tuple[str, ...]], now_s: float) -> list[int]:
        """Return the blocks at which a live entry ends, from ``mark`` backwards."""
        places = range(mark, max(mark - LOOKBACK, -1), -1)
        used = {index: self._entries[keys[index]] for index in places if keys[index] in self._entries}
        return [index for index, last in used.items() if now_s - last <= self._lifetime_s]


def text_of(message: Mapping[str, Any]) -> str:
    """Return the text of all blocks of a message."""
    content = message["content"]
    return content if isinstance(content, str) else "".join(block["text"] for block in content)


def _blocks(messages: Sequence[Mapping[str, Any]]) -> tuple[list[tuple[str, str]], list[int]]:
    """All blocks as role and text, and which of them are marked."""
    blocks: list[tuple[str, str]] = []
    marks: list[int] = []
    for message in messages:
        content = message["content"]
        parts = [{"text": content}] if isinstance(content, str) else content
        for part in parts:
            if "cache_control" in part:
                marks.append(len(blocks))
            blocks.append((message["role"], part["text"]))
    return blocks, marks


def _common(left: str, right: str) -> int:
    """Return the length of the common prefix."""
    low, high = 0, min(len(left), len(right))
    while low < high:
        middle = (low + high + 1) // 2
        if left[low:middle] == right[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
