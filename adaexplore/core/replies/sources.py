"""Find everything in an answer that may be source text: in fences, in wrappers, or bare between prose."""

import html
import json
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

from adaexplore.core.replies.fences import Block, error_line, fenced_blocks, parses

_ELEMENT = re.compile(
    r"^[ \t]{0,8}(?:<[A-Za-z/][^<>\n]{0,200}>|<!\[CDATA\[)++|(?:\]\]>|</[A-Za-z][\w:.=-]{0,40}>)++[ \t]*$",
    re.MULTILINE,
)
_ENTITY = re.compile(r"&(?:lt|gt|amp|quot|#\d{1,4}|#x[0-9a-f]{1,4});", re.IGNORECASE)
_STATEMENT = re.compile(
    r"import[ \t]+[\w.]+[ \t]*(?:as[ \t]+\w+[ \t]*)?(?:,|#|;|$)|from[ \t]+[\w.]+[ \t]+import\b|@[\w.]+|#"
    r"|class[ \t]+\w+[ \t]*[:(]|(?:async[ \t]+)?def[ \t]+\w+[ \t]*\("
    r"|(?:if|for|while|with|try|elif|else|except|finally)\b.*:[ \t]*(?:#.*)?$|(?:assert|raise|del)[ \t]"
    r"|[\w.\[\], ]{1,200}(?::[^=]{1,80})?[-+*/|&]?=[^=]|[\w.]{1,200}[(\[]|[)\]}]|r?\"{3}|r?'{3}"
)
_QUOTES = re.compile(r'"{3}|\'{3}')
_JSON_START = re.compile(r"^[ \t]*+(?=[{\[])", re.MULTILINE)
_TRIED = 8
_DEEPEST = 3
_DECODER = json.JSONDecoder(strict=False)


@dataclass(frozen=True)
class Source:
    """Text that may be a program."""

    text: str
    end: int  # where it ends in the answer


def sources_in(answer: str, name: str) -> list[Source]:
    """Return the texts of ``answer`` that may be source, in order; bare ones only if they hold ``name``."""
    return list(_sources(answer, name, 0))


def _sources(text: str, name: str, depth: int) -> Iterator[Source]:
    if depth > _DEEPEST or not text.strip():
        return
    whole = list(_from_json(text, name, depth)) if text.lstrip()[:1] in ("{", "[") else []
    if not whole and name in text and parses(text):
        whole = [Source(text, len(text))]
    if whole:
        yield from whole
        return
    start = 0
    for block in fenced_blocks(text):
        yield from _moved(_bare(text[start : block.start], name, depth), start)
        yield from (Source(each.text, block.end) for each in _in_block(block, name, depth))
        start = block.end
    yield from _moved(_bare(text[start:], name, depth), start)


def _moved(found: Iterator[Source], by: int) -> Iterator[Source]:
    return (Source(each.text, each.end + by) for each in found)


def _in_block(block: Block, name: str, depth: int) -> Iterator[Source]:
    """Return the content of a block, or what is inside it if it is no program itself."""
    text = block.text
    inner = list(_from_json(text, name, depth)) if text.lstrip()[:1] in ("{", "[") else []
    if not inner and name in text and not parses(text):
        fenced = "```" in text or "~~~" in text
        inner = list(_sources(text, name, depth + 1) if fenced else _bare(text, name, depth, trims=False))
    yield from inner or [Source(_added_file(text) or text, 0)]


def _from_json(text: str, name: str, depth: int) -> Iterator[Source]:
    """Yield the sources in strings of the JSON values that begin a line of ``text``."""
    for value, end in _json_values(text) if name in text else ():
        for string in _strings(value):
            if "\n" in string or name in string:
                yield from (Source(each.text, end) for each in _sources(string, name, depth + 1))


def json_values(text: str) -> list[Any]:
    """Return the JSON values that begin a line of ``text``; only the first few places are tried."""
    return [value for value, _ in _json_values(text)]


def _json_values(text: str) -> Iterator[tuple[Any, int]]:
    """Yield the values and where they end."""
    end = 0
    starts = (place.end() for place in _JSON_START.finditer(text))
    for start in islice(starts, _TRIED):
        if start >= end:
            try:
                value, end = _DECODER.raw_decode(text, start)
            except (ValueError, RecursionError):
                continue
            yield value, end


def _strings(value: Any) -> Iterator[str]:
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list) and value and all(isinstance(line, str) for line in value):
            yield "\n".join(value)
        elif isinstance(value, dict | list):
            waiting += reversed([*value.values()] if isinstance(value, dict) else value)


def _bare(text: str, name: str, depth: int, *, trims: bool = True) -> Iterator[Source]:
    """Yield the sources between fences: lines of code, as far as their first words say.

    With ``trims`` a run ends before its first error, which may be prose; one in a fence is the code's.
    """
    if name not in text:
        return
    plain = _ELEMENT.sub("", text)
    found = list(_from_json(plain, name, depth))
    if found:
        yield from (Source(each.text, len(text)) for each in found)
        return
    if "<" not in plain and _ENTITY.search(plain):
        plain = html.unescape(plain)
    for part in _code_lines(plain):
        if name in part:
            yield Source(_added_file(part) or (_trimmed(part, name) if trims else part), len(text))
        elif part.strip():
            yield Source(part, len(text))


def _code_lines(text: str) -> Iterator[str]:
    """Split a text into runs of lines that look like code at the margin, and indented runs below prose."""
    run: list[str] = []
    in_string = False
    indented = False
    blank = True
    for line in text.split("\n"):
        quotes = len(_QUOTES.findall(line))
        if in_string or not line.strip():
            run.append(line)
        elif line[0] in " \t":
            indented = indented or blank
            blank = False
            run.append(line)
        elif _STATEMENT.match(line) and not indented:
            blank = False
            run.append(line)
        else:
            yield _run(run)
            run, indented, blank = [], False, True
            if _STATEMENT.match(line):
                blank = False
                run.append(line)
            else:
                quotes = 0
        in_string ^= quotes % 2 == 1
    yield _run(run)


def _trimmed(code: str, name: str) -> str:
    """Return ``code`` up to its first error, if that part is Python and holds ``name``."""
    error = error_line(code)
    if error is None:
        return code
    lines = code.split("\n")
    start = min(error, len(lines)) - 1
    while start > 0 and lines[start][:1] in ("", " ", "\t", "#", ")", "]", "}"):
        start -= 1
    before = "\n".join(lines[:start]) + "\n"
    return before if name in before and parses(before) else code


def _run(lines: list[str]) -> str:
    return textwrap.dedent("\n".join(lines)).strip("\n") + "\n"


def _added_file(text: str) -> str:
    """Return the file that a diff adds; "" if ``text`` is no such diff."""
    lines = text.strip("\n").split("\n")
    start = next((place for place, line in enumerate(lines) if line.startswith("@@")), None)
    if start is None:
        return ""
    body = [line for line in lines[start + 1 :] if not line.startswith("\\")]
    if not body or not all(line.startswith("+") for line in body):
        return ""
    return "\n".join(line[1:] for line in body) + "\n"
