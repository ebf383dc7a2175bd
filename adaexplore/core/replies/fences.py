"""Find the fenced blocks of a reply, also of one that breaks the rules of Markdown.

Models write code at the margin inside list items, open fences after text, forget to close them, or end them
right after code. So this reads lines by their fences only, in time linear in the length of the text.
"""

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from adaexplore.core.text.identity import MOST_PARSED_CHARS
from adaexplore.core.text.syntax import parse

_LANGUAGES = (
    r"python\d*|ipython|py\d?|pycon|triton|cpp|c\+\+|cuda|c|bash|sh|shell|console|zsh|te?xt|plain(?:text)?"
    r"|output|log|diff|patch|jsonc?|ya?ml|toml|ini|xml|html|markdown|md"
)
_ONLY_LANGUAGE = re.compile(rf"[ \t]*+(?:{_LANGUAGES})?[ \t]*+", re.IGNORECASE)
_KNOWN_INFO = re.compile(
    rf"[ \t]*+(?:\{{?[ \t]*+\.?(?:{_LANGUAGES})(?![\w+])|[\w/-]{{1,80}}\.\w{{1,5}}\b)", re.IGNORECASE
)
_CODE_AFTER_INFO = re.compile(
    r"[ \t]*+(?:python\d*|py|triton)?[ \t]*+"
    r"(?=import[ \t]+\w|from[ \t]+[\w.]+[ \t]+import\b|class[ \t]+\w|def[ \t]+\w|@\w)"
)
_TICKS = re.compile(r"(?P<ticks>`{3,}+|~{3,}+)(?P<rest>[^\n]*+)")
_MOST_INDENTED = 3
"""A closing fence may be indented this much deeper than the opening one."""
_QUOTES = re.compile(r'"{3}|\'{3}')
_QUOTED_RUN = re.compile(r"^[ \t]{0,3}>[^\n]*+(?:\n[ \t]{0,3}>[^\n]*+|\n[ \t]*+(?=\n))*+", re.MULTILINE)
_QUOTE_MARK = re.compile(r"^[ \t]{0,3}>[ \t]?", re.MULTILINE)
_IN_QUOTES = re.compile(r"```|~~~|<old_str|<<<<<<<|^[ \t]{0,3}> ?(?:@@|class )", re.MULTILINE)
_LANGUAGE_LINE = re.compile(r"\s*^(?:python\d*|py)[ \t]*\n", re.MULTILINE | re.IGNORECASE)


@dataclass(frozen=True)
class Block:
    """A fenced block.

    start, end: its place in the reply, with its fences.
    """

    text: str  # its content, without the common indentation
    info: str  # the text after the opening fence
    start: int
    end: int


@dataclass(frozen=True)
class _Opening:
    ticks: str
    column: int
    info: str
    start: int
    content: int


def fenced_blocks(text: str) -> list[Block]:
    """Return the fenced blocks of ``text`` in order.

    A block without an end extends to the next fence that opens a block, or to the end of the text.
    """
    fences = list(_TICKS.finditer(text))
    blocks, rest = _read(text, fences, docstrings=True)
    if rest is not None:  # three quotes that are no docstring's: an end was overlooked
        more, _ = _read(text, [fence for fence in fences if fence.start() >= rest], docstrings=False)
        blocks += more
    return blocks


def unquoted(text: str) -> str:
    """Return ``text`` with quotation marks ``>`` removed before lines that hold a fence or edits."""

    def plain(run: re.Match[str]) -> str:
        quoted = run.group()
        return _QUOTE_MARK.sub("", quoted) if _IN_QUOTES.search(quoted) else quoted

    return _QUOTED_RUN.sub(plain, text)


def parses(text: str) -> bool:
    """Return whether ``text`` is Python; False for a very long one."""
    return error_line(text) is None


def error_line(text: str) -> int | None:
    """Return the line of the first error in ``text`` as Python; None if it parses.

    The line is 1 if it is unknown, and for a very long text.
    """
    if len(text) > MOST_PARSED_CHARS:
        return 1
    try:
        parse(text)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
    return None


def _read(text: str, fences: Sequence[re.Match[str]], *, docstrings: bool) -> tuple[list[Block], int | None]:
    """Return the blocks; and, if an end may lie in what looks like a docstring, where to read again."""
    blocks: list[Block] = []
    opened: _Opening | None = None
    quotes, counted = 0, 0
    overlooked: re.Match[str] | None = None
    for fence in fences:
        line = text.rfind("\n", 0, fence.start()) + 1
        before = text[line : fence.start()]
        if opened is None:
            opened = _opening(fence, before, line)
            quotes, counted, overlooked = 0, fence.end(), None
            continue
        quotes += len(_QUOTES.findall(text, counted, fence.start()))
        counted = fence.start()
        if fence["ticks"][0] != opened.ticks[0] or len(fence["ticks"]) < len(opened.ticks):
            continue
        if docstrings and quotes % 2:
            overlooked = overlooked or fence
            continue
        deeper = not before.strip() and len(before) > opened.column + _MOST_INDENTED
        if not fence["rest"].strip() and not deeper:
            blocks.append(_block(text, opened, fence.start(), fence.end()))
            opened = None
        elif not deeper and _opens_anew(fence, before):
            end = line if not before.strip() else fence.start()
            blocks.append(_block(text, opened, end, end))
            opened = _opening(fence, before, line)
            quotes, counted, overlooked = 0, fence.end(), None
        elif not before.strip() and not deeper:
            blocks.append(_block(text, opened, fence.start(), fence.end()))
            opened = None
        else:
            overlooked = overlooked or fence
    if opened is None:
        return blocks, None
    if overlooked is None:
        return [*blocks, _block(text, opened, len(text), len(text))], None
    return [*blocks, _block(text, opened, overlooked.start(), overlooked.end())], overlooked.end()


def _opening(fence: re.Match[str], before: str, line: int) -> _Opening | None:
    """Return the fence as an opening one: at the start of a line, or after text with the language alone."""
    rest = fence["rest"]
    if "`" in rest and fence["ticks"][0] == "`" and not _CODE_AFTER_INFO.match(rest):
        return None
    if before.strip() and not (rest.strip() and _ONLY_LANGUAGE.fullmatch(rest)):
        return None
    code = _CODE_AFTER_INFO.match(rest)
    content = fence.start("rest") + code.end() if code else fence.end() + 1
    info = "" if code else rest.strip()
    start = fence.start() if before.strip() else line
    return _Opening(fence["ticks"], len(before), info, start, content)


def _opens_anew(fence: re.Match[str], before: str) -> bool:
    """Return whether a fence inside an open block opens another one: it names a language or a file."""
    rest = fence["rest"]
    if "`" in rest:
        return False
    if before.strip():
        return bool(rest.strip()) and _ONLY_LANGUAGE.fullmatch(rest) is not None
    return _KNOWN_INFO.match(rest) is not None


def _block(text: str, opened: _Opening, end: int, after: int) -> Block:
    content = text[opened.content : end] if opened.content <= end else ""
    if opened.column or content.lstrip("\n")[:1] in (" ", "\t"):
        content = _without_margin(content, opened.column)
    language = _LANGUAGE_LINE.match(content)
    return Block(content[language.end() :] if language else content, opened.info, opened.start, after)


def _without_margin(content: str, column: int) -> str:
    content = textwrap.dedent(content)
    if column and content.lstrip("\n")[:1] in (" ", "\t"):
        return re.sub(rf"^[ \t]{{1,{min(column, 99)}}}", "", content, flags=re.MULTILINE)
    return content
