"""Derive smaller programs from a program by one change of its syntax tree."""

import ast
import copy
from collections.abc import Iterator

from adaexplore.core.text.syntax import parse

_OPTIONAL_LISTS = frozenset({"decorator_list", "keywords", "args", "bases", "elts"})
_OPTIONAL = frozenset({"returns", "annotation"})
_WRAPPERS = (ast.If, ast.For, ast.While, ast.With, ast.Try)


def parsed(source: str) -> ast.Module:
    """Parse ``source`` without docstrings.

    Raises:
        SyntaxError: it is not Python.
    """
    tree = parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef | ast.Module) and len(node.body) > 1:
            first = node.body[0]
            if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant):
                del node.body[0]
    return tree


def unparsed(tree: ast.Module) -> str | None:
    """Return the source of ``tree``; None if a change made it invalid."""
    try:
        source = ast.unparse(ast.fix_missing_locations(tree)) + "\n"
        parse(source)
    except (AttributeError, TypeError, ValueError, SyntaxError, RecursionError):
        return None
    return source


def size(tree: ast.AST) -> int:
    return sum(1 for _ in ast.walk(tree))


def block_count(tree: ast.Module) -> int:
    return len(_blocks(tree))


def block_length(tree: ast.Module, block: int) -> int:
    """Return the number of statements in a list; 0 past the last list."""
    found = _blocks(tree)
    return len(getattr(*found[block])) if block < len(found) else 0


def without_statements(tree: ast.Module, block: int, start: int, count: int) -> ast.Module:
    """Return ``tree`` without some statements of a block; an empty body becomes ``pass``."""
    changed = copy.deepcopy(tree)
    owner, name = _blocks(changed)[block]
    statements = getattr(owner, name)
    del statements[start : start + count]
    if not statements and name == "body" and not isinstance(owner, ast.Module):
        statements.append(ast.Pass())
    return changed


def simplifications(tree: ast.Module, index: int) -> Iterator[ast.Module]:
    """Yield trees with a simpler ``index``-th node, counted by ``ast.walk``.

    An expression is replaced by one of its parts or by a number, an optional part is removed, a statement is
    replaced by a block inside it.
    """
    node = list(ast.walk(tree))[index]
    for name, value in ast.iter_fields(node):
        if isinstance(value, ast.expr):
            if name in _OPTIONAL and not isinstance(node, ast.AnnAssign):
                changed, other = _copy(tree, index)
                setattr(other, name, None)
                yield changed
            for new in _instead_of(value):
                changed, other = _copy(tree, index)
                setattr(other, name, copy.deepcopy(new))
                yield changed
        elif isinstance(value, list):
            for position, item in enumerate(value):
                if name in _OPTIONAL_LISTS:
                    changed, other = _copy(tree, index)
                    if isinstance(other, ast.arguments):
                        _drop_parameter(other, position)
                    else:
                        del getattr(other, name)[position]
                    yield changed
                for new in _instead_of(item) if isinstance(item, ast.expr) else ():
                    changed, other = _copy(tree, index)
                    getattr(other, name)[position] = copy.deepcopy(new)
                    yield changed
                if isinstance(item, _WRAPPERS):
                    changed, other = _copy(tree, index)
                    items = getattr(other, name)
                    items[position : position + 1] = items[position].body
                    yield changed


def _copy(tree: ast.Module, index: int) -> tuple[ast.Module, ast.AST]:
    changed = copy.deepcopy(tree)
    return changed, list(ast.walk(changed))[index]


def _instead_of(node: ast.expr) -> list[ast.expr]:
    """Yield simpler expressions for an expression: its parts, then numbers."""
    if isinstance(node, ast.Constant | ast.Name):
        return []
    parts = [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)]
    if isinstance(node, ast.Call):
        parts = [*node.args, *(keyword.value for keyword in node.keywords), *parts]
    return [*parts, ast.Constant(0), ast.Constant(1.0)]


def _drop_parameter(arguments: ast.arguments, position: int) -> None:
    first_default = len(arguments.args) - len(arguments.defaults)
    if position >= first_default:
        del arguments.defaults[position - first_default]
    del arguments.args[position]


def _blocks(tree: ast.Module) -> list[tuple[ast.AST, str]]:
    """Return every list of statements, by owner and field, outer ones first."""
    return [
        (node, name)
        for node in ast.walk(tree)
        for name, value in ast.iter_fields(node)
        if isinstance(value, list) and value and all(isinstance(item, ast.stmt) for item in value)
    ]
