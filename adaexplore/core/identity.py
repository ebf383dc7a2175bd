"""Identity of a source up to formatting, comments and docstrings."""

from __future__ import annotations

import ast
import hashlib
from functools import lru_cache

from adaexplore.core.syntax import parse


@lru_cache(maxsize=128)  # a step asks several times about the same text
def source_identity(source: str) -> str:
    """A hash that two sources share when they are the same program.

    Comments, blank lines, formatting and docstrings do not count; names, numbers and order do.
    A text that does not parse is identified by its lines without trailing blanks.
    """
    try:
        tree = parse(source)
        for node in ast.walk(tree):
            _drop_docstring(node)
        text = ast.dump(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        text = "\n".join(line.rstrip() for line in source.strip().splitlines())
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _drop_docstring(node: ast.AST) -> None:
    if not isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
        return
    first = node.body[0] if node.body else None
    value = first.value if isinstance(first, ast.Expr) else None
    if isinstance(value, ast.Constant) and isinstance(value.value, str):
        node.body = node.body[1:]
