"""Values of names and arguments of calls."""

import ast
from collections.abc import Sequence


def argument(call: ast.Call, position: int, name: str) -> ast.expr | None:
    """Return the argument of a call, given by name or position."""
    for word in call.keywords:
        if word.arg == name:
            return word.value
    return call.args[position] if len(call.args) > position else None


def assigned(node: ast.Assign | ast.AnnAssign, name: str) -> ast.expr | None:
    """Return the expression that a plain assignment gives to ``name``."""
    targets = node.targets if isinstance(node, ast.Assign) else [node.target]
    if any(isinstance(target, ast.Name) and target.id == name for target in targets):
        return node.value
    return None


def is_open(call: ast.Call) -> bool:
    """Return whether ``*`` or ``**`` hides arguments of a call."""
    starred = any(isinstance(arg, ast.Starred) for arg in call.args)
    return starred or any(word.arg is None for word in call.keywords)


def unfit(given: ast.arguments, positions: int, words: Sequence[str]) -> str | None:
    """Return why a call with these positional and keyword arguments fails; None if it does not."""
    names = [arg.arg for arg in (*given.posonlyargs, *given.args)]
    open_words = {arg.arg for arg in (*given.args, *given.kwonlyargs)}
    if given.vararg is None and positions > len(names):
        return f"takes {len(names)} positional arguments and gets {positions}"
    for word in words:
        if word in names[:positions] and word in open_words:
            return f"gets {word} twice"
        if word not in open_words and given.kwarg is None:
            return f"has no parameter {word}"
    required = names[: len(names) - len(given.defaults)]
    missing = [name for name in required[positions:] if name not in words]
    missing += [
        arg.arg
        for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        if default is None and arg.arg not in words
    ]
    return f"is called without {', '.join(missing)}" if missing else None


def methods(owner: ast.ClassDef) -> dict[str, ast.FunctionDef]:
    """Return the methods of a class, the last one of each name."""
    return {node.name: node for node in owner.body if isinstance(node, ast.FunctionDef)}
