"""Extract the kernel from a model's reply as the release does: the first fenced block counts."""

import ast
import re
import textwrap

from adaexplore.core.text.syntax import parsed

_MODEL = re.compile(r"^[ \t]*class[ \t]+ModelNew\b", re.MULTILINE)
_OPENING = re.compile(
    r"(?:^(?P<starts>[ \t]*+)|(?<!`))(?P<ticks>`{3,}+)"
    r"(?(starts)[^`\n]*|[ \t]*(?:python3?|py|cpp|c\+\+|cuda|triton)[ \t\r]*)$",
    re.MULTILINE | re.IGNORECASE,
)
"""Three or more backticks at the start of a line, or after text if only the language follows."""
_FENCE = re.compile(r"(?P<starts>^[ \t]*+)?(?P<ticks>`{3,}+)(?P<ends>[ \t\r]*$)?", re.MULTILINE)
_LANGUAGE_LINE = re.compile(r"[ \t]*[\w+#.-]*[ \t\r]*(?:\n|\Z)")
_LANGUAGE_WORD = re.compile(r"[ \t]*(?:python3?|py|cpp|c\+\+|cuda|triton)\s+", re.IGNORECASE)


def extract_code(reply: str) -> str | None:
    """Return the source in ``reply``; None if there is no code in it.

    The source is the first block in a fence of three or more backticks, without the language on the
    fence's line; an unclosed fence extends to the end. If that block does not define ``ModelNew`` but
    a later one does (for example after a shell command), the first block that does is used. A reply
    without fences is code if it defines the class or parses as Python with a class.
    """
    blocks = _blocks(reply)
    if not blocks:
        return reply if _MODEL.search(reply) or _is_code(reply) else None
    chosen = next((block for block in blocks if _MODEL.search(block)), blocks[0])
    return chosen if chosen.strip() else None


def _blocks(reply: str) -> list[str]:
    blocks: list[str] = []
    position = 0
    while (opening := _OPENING.search(reply, position)) is not None:
        column = opening.start("ticks") - reply.rfind("\n", 0, opening.start("ticks")) - 1
        end, position = _end(reply, opening, column)
        blocks.append(_text_between(reply, opening.end("ticks"), end, indented=column > 0))
    return blocks


def _end(reply: str, opening: re.Match[str], column: int) -> tuple[int, int]:
    """Return where a block ends, and where to look for the next one.

    The closing fence ends its line. If it is also the start of the line, it is not indented deeper than the
    opening fence: one in a docstring is. Without a closing fence, the first fence of any kind ends it.
    """
    first = None
    for fence in _FENCE.finditer(reply, opening.end()):
        if len(fence["ticks"]) < len(opening["ticks"]):
            continue
        if fence["ends"] is not None and (fence["starts"] is None or len(fence["starts"]) <= column):
            return fence.start(), fence.end()
        first = first or fence
    return len(reply) if first is None else first.start(), len(reply)


def _text_between(reply: str, start: int, end: int, *, indented: bool) -> str:
    text = reply[start:end]
    language = _LANGUAGE_LINE.match(text) or _LANGUAGE_WORD.match(text)
    text = text[language.end() :] if language else text
    return textwrap.dedent(text) if indented else text


def _is_code(text: str) -> bool:
    module = parsed(text)
    return module is not None and any(isinstance(node, ast.ClassDef) for node in module.body)
