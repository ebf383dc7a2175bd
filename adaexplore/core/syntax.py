"""Parsing Python from several threads.

CPython 3.11 counts the depth of a tree that it builds once for all threads: two parses at a time can end in
``SystemError: AST constructor recursion depth mismatch`` for a source that is fine. One at a time cannot.
"""

from __future__ import annotations

import ast
import threading
from typing import Any

_ONE_AT_A_TIME = threading.Lock()


def parse(source: str) -> ast.Module:
    """The tree of a module.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as :func:`ast.parse`.
    """
    with _ONE_AT_A_TIME:
        return ast.parse(source)


def parse_expression(source: str) -> ast.Expression:
    """The tree of one expression; raises as :func:`parse`."""
    with _ONE_AT_A_TIME:
        return ast.parse(source, mode="eval")


def literal(source: str) -> Any:
    """The value of a literal; raises as :func:`parse`, and ValueError or TypeError where it is none."""
    return ast.literal_eval(parse_expression(source.lstrip(" \t")))
