"""Parse Python from several threads.

CPython 3.11 has one depth counter of trees for all threads: two parallel parses can raise ``SystemError:
AST constructor recursion depth mismatch`` for valid source. So a lock allows one parse at a time.
"""

from __future__ import annotations

import ast
import threading
from collections.abc import Iterable, Iterator
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


def top_level_names(body: Iterable[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Return the names that the statements bind in their own scope, in common forms."""
    for statement in body:
        match statement:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name, statement
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from ((alias.asname or alias.name, statement) for alias in names)
            case ast.Assign(targets=targets):
                yield from ((target.id, statement) for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                yield name, statement
            case ast.If(body=then, orelse=otherwise):
                yield from top_level_names([*then, *otherwise])
            case ast.Try(body=tried, handlers=handlers, orelse=otherwise, finalbody=final):
                caught = [inner for handler in handlers for inner in handler.body]
                yield from top_level_names([*tried, *caught, *otherwise, *final])
            case ast.With(body=inner_body):
                yield from top_level_names(inner_body)


def imports(nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Return the names that imports bind, with their dotted paths."""
    for node in nodes:
        if isinstance(node, ast.Import):
            for alias in node.names:
                if alias.asname is not None:
                    yield alias.asname, alias.name
                else:
                    yield alias.name.partition(".")[0], alias.name.partition(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
            for alias in node.names:
                yield alias.asname or alias.name, f"{node.module}.{alias.name}"
