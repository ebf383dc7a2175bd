"""The category of a problem, read from its source: the fifteen of KernelBench-X (arXiv 2605.04956).

A problem whose operators are all in one category has that category. With operators of several
categories it is ``Fusion``; with int8 or fp8 values it is always ``Quantization``.
"""

import ast
import builtins
import re
from collections.abc import Iterator
from functools import cache

from adaexplore.core.text.syntax import parsed
from adaexplore.settings.yaml_text import read_bundled

FUSION = "Fusion"
QUANTIZATION = "Quantization"
OTHER = "Other"
"""Category of a source that does not parse or has no known operator."""

_INPUTS = ("get_inputs", "get_init_inputs", "get_workloads")
_GENERATED = ("_fi_", "_tb_", "_TB_")
"""Names in the code that :mod:`adaexplore.core.dialects` adds to a task."""
_QUANTISED_TYPE = re.compile(r"q?u?int[48]|float8_\w+|\w*quantize\w*")
_QUANTISED_NAME = re.compile(r"w\d+a\d+|quantiz")
_OPTIMIZER = re.compile(r"\b(adamw?|sgd|rms_?prop|lion|ada_?grad|ada_?delta)(_step|\b)")
_WITHIN_LINEAR_ALGEBRA = {"LinearAlgebra", "MatrixMultiply", "Reduce", "Math"}
"""Categories that may occur beside a decomposition without changing its category."""


def category_of(source: str) -> str:
    """Return the category of a problem, or of any module with PyTorch operators."""
    tree = parsed(source)
    if tree is None:
        return OTHER
    body = [node for node in tree.body if getattr(node, "name", None) not in _INPUTS]
    body = [node for node in body if not _is_generated(node)]
    nodes = [node for statement in body for node in ast.walk(statement)]
    defined = " ".join(getattr(node, "name", "").lower() for node in body)
    wrapper = [node for node in tree.body if _names_dtypes(node)]
    types = [
        node.attr
        for node in [*nodes, *(node for statement in wrapper for node in ast.walk(statement))]
        if isinstance(node, ast.Attribute)
    ]
    if _QUANTISED_NAME.search(defined) or any(_QUANTISED_TYPE.fullmatch(name) for name in types):
        return QUANTIZATION
    if _OPTIMIZER.search(defined):
        return "Optimizer"
    found = {category for statement in body for category in _categories(statement, constructor=False)}
    if "LinearAlgebra" in found and found <= _WITHIN_LINEAR_ALGEBRA:
        return "LinearAlgebra"
    if found:
        return found.pop() if len(found) == 1 else FUSION
    arithmetic = any(isinstance(node, ast.BinOp | ast.Compare) for node in nodes)
    return "Math" if arithmetic else OTHER


@cache
def _by_operator() -> dict[str, str]:
    table = read_bundled("adaexplore.tasks", "categories.yaml")
    return {name: category for category, names in table.items() for name in names.split()}


def _names_dtypes(statement: ast.stmt) -> bool:
    """Return whether a statement is wrapper code that lists the dtypes of the task's inputs or outputs."""
    return getattr(statement, "name", None) in ("Model", "get_workloads") and _is_generated(statement)


def _is_generated(statement: ast.stmt) -> bool:
    """Return whether a statement is wrapper code of a problem made from another benchmark's task."""
    nodes = list(ast.walk(statement))
    names = [node.id for node in nodes if isinstance(node, ast.Name)]
    return any(name.startswith(_GENERATED) for name in (*names, getattr(statement, "name", "")))


def _categories(node: ast.AST, *, constructor: bool) -> Iterator[str]:
    """Yield the category of each operator; in a constructor, only modules are operators."""
    if isinstance(node, ast.FunctionDef) and node.name == "__init__":
        constructor = True
    name = _called(node)
    if name is not None and (not constructor or name[:1].isupper()):
        plain = re.sub(r"_|(?<=[a-z])[123]d$", "", name.lower().rstrip("_"))
        if plain in _by_operator():
            yield _by_operator()[plain]
    for child in ast.iter_child_nodes(node):
        yield from _categories(child, constructor=constructor)


def _called(node: ast.AST) -> str | None:
    """Return the name of the operator that an expression calls; None if it calls none."""
    match node:
        case ast.BinOp(op=ast.MatMult()):
            return "matmul"
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "math"))):
            return None
        case ast.Call(func=ast.Attribute(attr=name)):
            return name
        case ast.Call(func=ast.Name(id=name)) if not hasattr(builtins, name):
            return name
    return None
