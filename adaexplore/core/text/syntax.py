"""Parse Python from several threads, and find the names that statements bind.

CPython 3.11 has one depth counter of trees for all threads: two parallel parses can raise ``SystemError:
AST constructor recursion depth mismatch`` for valid source. So a lock allows one parse at a time.
"""

import ast
import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

_ONE_AT_A_TIME = threading.Lock()


def parse(source: str) -> ast.Module:
    """Parse a module.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: as :func:`ast.parse`.
    """
    with _ONE_AT_A_TIME:
        return ast.parse(source)


def parsed(source: str) -> ast.Module | None:
    """Parse a module; None for text that is not Python or is nested too deeply."""
    try:
        return parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None


def parse_expression(source: str) -> ast.Expression:
    """Parse one expression; raises as :func:`parse`."""
    with _ONE_AT_A_TIME:
        return ast.parse(source, mode="eval")


def literal(source: str) -> Any:
    """Evaluate a literal; raises as :func:`parse`, and ValueError or TypeError for anything else."""
    return ast.literal_eval(parse_expression(source.lstrip(" \t")))


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


def bound_names(node: ast.AST) -> Iterator[str]:
    """Return the names that a statement binds in its own scope, without the parts of compound statements."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.Assign(targets=targets) | ast.Delete(targets=targets):
            for target in targets:
                yield from _stored(target)
        case ast.AnnAssign(target=target, value=ast.expr()) | ast.AugAssign(target=target):
            yield from _stored(target)
        case ast.For(target=target) | ast.AsyncFor(target=target):
            yield from _stored(target)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    yield from _stored(item.optional_vars)
    for inner in ast.walk(node) if isinstance(node, ast.Expr | ast.Assign | ast.If | ast.While) else ():
        if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
            yield inner.target.id


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of one scope, including those inside compound statements."""
    waiting = [*reversed(body)]  # without recursion: a chain of ``elif`` nests deeply
    while waiting:
        node = waiting.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            inner = [each for part in ("body", "orelse", "finalbody") for each in getattr(node, part, [])]
            branches = (*getattr(node, "handlers", []), *getattr(node, "cases", []))
            inner += [each for branch in branches for each in branch.body]
            waiting += reversed(inner)


def _stored(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            yield node.id
