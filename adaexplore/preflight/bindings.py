"""Which names statements bind, and to what."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """The argument of a call, given by name or position."""
    for word in call.keywords:
        if word.arg == name:
            return word.value
    return call.args[position] if len(call.args) > position else None


def bound_names(node: ast.AST) -> Iterator[str]:
    """Names that one statement binds in its own scope; the parts of compound ones apart."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.Import(names=names):
            yield from (alias.asname or alias.name.partition(".")[0] for alias in names)
        case ast.ImportFrom(names=names):
            yield from (alias.asname or alias.name for alias in names)
        case ast.Assign(targets=targets):
            for target in targets:
                yield from stored_names(target)
        case ast.AnnAssign(target=target, value=ast.expr()) | ast.AugAssign(target=target):
            yield from stored_names(target)
        case ast.For(target=target) | ast.AsyncFor(target=target):
            yield from stored_names(target)
        case ast.With(items=items) | ast.AsyncWith(items=items):
            for item in items:
                if item.optional_vars is not None:
                    yield from stored_names(item.optional_vars)
        case _:
            pass
    for inner in ast.walk(node) if isinstance(node, ast.Expr | ast.Assign | ast.If | ast.While) else ():
        if isinstance(inner, ast.NamedExpr) and isinstance(inner.target, ast.Name):
            yield inner.target.id


def stored_names(target: ast.expr) -> Iterator[str]:
    """Names in the target of an assignment."""
    for node in ast.walk(target):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


def statements(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Statements of one scope, also those inside compound ones."""
    for node in body:
        yield node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        for part in ("body", "orelse", "finalbody"):
            yield from statements(getattr(node, part, []) or [])
        for handler in getattr(node, "handlers", []):
            yield from statements(handler.body)
        for case in getattr(node, "cases", []):
            yield from statements(case.body)


def imports(nodes: Iterator[ast.AST]) -> Iterator[tuple[str, str]]:
    """Names that imports bind, with the dotted paths that they stand for."""
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


def assigned(node: ast.Assign | ast.AnnAssign, name: str) -> ast.expr | None:
    """The expression that a plain assignment gives to ``name``."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if any(isinstance(target, ast.Name) and target.id == name for target in targets):
        return node.value
    return None
