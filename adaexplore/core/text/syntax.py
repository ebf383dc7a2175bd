"""Parse Python from several threads.

CPython 3.11 has one depth counter of trees for all threads: two parallel parses can raise ``SystemError:
AST constructor recursion depth mismatch`` for valid source. So a lock allows one parse at a time.
"""

from __future__ import annotations

import ast
import threading
from typing import Any

_ONE_AT_A_TIME = threading.Lock()


def parse(source: str) -> ast.Module:
    """Parse a module.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as :func:`ast.parse`.
    """
    with _ONE_AT_A_TIME:
        return ast.parse(source)


def parse_expression(source: str) -> ast.Expression:
    """Parse one expression; raises as :func:`parse`."""
    with _ONE_AT_A_TIME:
        return ast.parse(source, mode="eval")


def literal(source: str) -> Any:
    """Evaluate a literal; raises as :func:`parse`, and ValueError or TypeError for anything else."""
    return ast.literal_eval(parse_expression(source.lstrip(" \t")))
