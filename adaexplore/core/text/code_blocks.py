"""Extract the kernel from a model's reply."""

from __future__ import annotations

import ast
import re
import textwrap

from adaexplore.core.text.syntax import parse

_FENCE = re.compile(r"(?P<indentation>^[ \t]+)?(?P<ticks>`{3,})", re.MULTILINE)
_LANGUAGE_LINE = re.compile(r"[ \t]*[\w+#.-]*[ \t\r]*(?:\n|\Z)")
_LANGUAGE_WORD = re.compile(r"[ \t]*(?:python3?|py|cpp|c\+\+|cuda|triton)\s+", re.IGNORECASE)
_MODEL_NEW = re.compile(r"^[ \t]*class[ \t]+ModelNew\b", re.MULTILINE)


def extract_code(reply: str) -> str | None:
    """Return the source in ``reply``; None if there is no code in it.

    The source is the first block in a fence of three or more backticks, without the language on the
    fence's line; an unclosed fence extends to the end. If that block does not define ``ModelNew`` but a later
    one does (for example after a shell command), the first block that does is used. A reply
    without fences is code if it defines ``ModelNew`` or parses as Python with a class.
    """
    blocks = _blocks(reply)
    if not blocks:
        return reply if _is_code(reply) else None
    chosen = next((block for block in blocks if _MODEL_NEW.search(block)), blocks[0])
    return chosen if chosen.strip() else None


def _blocks(reply: str) -> list[str]:
    blocks: list[str] = []
    opening: re.Match[str] | None = None
    for fence in _FENCE.finditer(reply):
        if opening is None:
            opening = fence
        elif len(fence["ticks"]) >= len(opening["ticks"]):
            blocks.append(_text_between(reply, opening, fence.start()))
            opening = None
    if opening is not None:
        blocks.append(_text_between(reply, opening, len(reply)))
    return blocks


def _text_between(reply: str, opening: re.Match[str], end: int) -> str:
    text = reply[opening.end() : end]
    language = _LANGUAGE_LINE.match(text) or _LANGUAGE_WORD.match(text)
    text = text[language.end() :] if language else text
    return textwrap.dedent(text) if opening["indentation"] else text


def _is_code(text: str) -> bool:
    if _MODEL_NEW.search(text):
        return True
    try:
        module = parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False
    return any(isinstance(node, ast.ClassDef) for node in module.body)
