"""Identity of a source up to formatting, comments and docstrings."""

import ast
import hashlib
from functools import lru_cache

from adaexplore.core.text.own_text import reads_own_text
from adaexplore.core.text.syntax import parse

MOST_PARSED_CHARS = 2**20
"""Longer sources are not parsed: it takes minutes, and a judge takes none of them (``MAX_SOURCE_BYTES``)."""


@lru_cache(maxsize=128)  # a step asks about the same text several times
def source_identity(source: str) -> str:
    """Return a hash that is equal for two sources of the same program.

    Comments, blank lines, formatting and docstrings do not count; names, numbers and order do.
    A text that does not parse is identified by its lines without trailing blanks, a program that may read
    its own text (see :mod:`adaexplore.core.text.own_text`) and a very long one by that text.
    """
    if len(source) > MOST_PARSED_CHARS:
        return text_digest(f"exact\n{source}")
    try:
        tree = parse(source)
        for node in ast.walk(tree):
            _drop_docstring(node)
        text = f"exact\n{source}" if reads_own_text(source, tree) else ast.dump(tree)
    except (SyntaxError, ValueError):
        text = "\n".join(line.rstrip() for line in source.strip().splitlines())
    except (RecursionError, MemoryError):  # the candidate process may still be able to run it
        text = f"exact\n{source}"
    return text_digest(text)


def text_digest(text: str) -> str:
    """Return the SHA-256 of a text, including lone surrogates, in hexadecimal digits."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _drop_docstring(node: ast.AST) -> None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    first = node.body[0] if node.body else None
    value = first.value if isinstance(first, ast.Expr) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        node.body = node.body[1:]
