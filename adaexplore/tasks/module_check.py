"""Whether a source text is a problem module, found out without running it."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable, Iterator

from adaexplore.core.syntax import parse

REQUIRED_NAMES = ("Model", "get_inputs", "get_init_inputs")


def module_problem(source: str) -> str | None:
    """What keeps ``source`` from being a problem module, in one line; None when nothing does."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = parse(source)
    except SyntaxError as error:
        return f"line {error.lineno or 1}: not valid Python: {error.msg}"
    except (ValueError, RecursionError, MemoryError) as error:
        return f"not valid Python: {error or 'nested too deeply'}"
    defined = set(_top_level_names(tree.body))
    missing = [name for name in REQUIRED_NAMES if name not in defined]
    if missing:
        return f"does not define {', '.join(missing)}; a problem defines {', '.join(REQUIRED_NAMES)}"
    return None


def _top_level_names(body: Iterable[ast.stmt]) -> Iterator[str]:
    """Names that the statements bind in their own scope, in the forms that people use."""
    for statement in body:
        match statement:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name):
                yield name
            case ast.Import(names=names) | ast.ImportFrom(names=names):
                yield from (alias.asname or alias.name for alias in names)
            case ast.Assign(targets=targets):
                yield from (target.id for target in targets if isinstance(target, ast.Name))
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr()):
                yield name
            case ast.If(body=then, orelse=otherwise):
                yield from _top_level_names([*then, *otherwise])
            case ast.Try(body=tried, handlers=handlers, orelse=otherwise, finalbody=final):
                caught = [inner for handler in handlers for inner in handler.body]
                yield from _top_level_names([*tried, *caught, *otherwise, *final])
            case ast.With(body=inner_body):
                yield from _top_level_names(inner_body)
            case _:
                pass
