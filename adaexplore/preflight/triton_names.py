"""Names and parameters of the judge's Triton, as ``GET /v2/environment`` states them."""

import ast
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from pydantic import ValidationError

from adaexplore.core.environment import Environment, TritonFacts
from adaexplore.core.errors import UsageError
from adaexplore.core.files.inputs import input_bytes
from adaexplore.core.text.syntax import parsed
from adaexplore.preflight.candidate import Candidate
from adaexplore.preflight.findings import Finding, finding, lint_table

_LANGUAGE = "triton.language"
_LIBDEVICE = f"{_LANGUAGE}.extra.libdevice"
_SUBMODULES = ("core", "extra", "math", "random", "semantic", "standard", "target_info")
"""Submodules of the language; a judge's list of names does not have them."""


def read_triton(path: Path) -> TritonFacts | None:
    """Read the facts about Triton from a stored judge's environment.

    Raises:
        UsageError: the file cannot be read, or is not a judge's environment.
    """
    advice = "give a run's judge_environment.json, or what GET /v2/environment answers"
    data = input_bytes(path, "judge's environment", advice=advice)
    try:
        return Environment.model_validate_json(data).triton
    except ValidationError as error:
        raise UsageError(f"{path} is not a judge's environment; {advice}") from error


def missing_names(candidate: Candidate, node: ast.AST, triton: TritonFacts) -> Iterator[Finding]:
    """Yield the names that a node imports or reads and Triton lacks."""
    paths: list[str | None] = []
    match node:
        case ast.ImportFrom(module=str(module), names=names):
            paths = [f"{module}.{alias.name}" for alias in names if alias.name != "*"]
        case ast.Attribute(ctx=ast.Load()):
            paths = [candidate.path(node)]
    for path in paths:
        if path is not None and _lacks(triton, path):
            name = path.replace(_LANGUAGE, "tl", 1)
            yield finding(
                "missing-triton-name", getattr(node, "lineno", 1), name=name, instead=_instead(path, triton)
            )


def _lacks(triton: TritonFacts, path: str) -> bool:
    path = path.replace(".extra.cuda.libdevice", ".extra.libdevice")
    module, _, name = path.rpartition(".")
    if path in triton.gone or module in triton.gone:
        return True
    if module not in triton.names or path in triton.names or name.startswith("_"):
        return False
    return name not in triton.names[module] and not (module == _LANGUAGE and name in _SUBMODULES)


def _instead(path: str, triton: TritonFacts) -> str:
    name = path.rpartition(".")[2]
    known = lint_table().names.get(name)
    if known is not None:
        return f"; {known}"
    if name in triton.names.get(_LIBDEVICE, ()):
        return f"; use libdevice.{name} after: from triton.language.extra import libdevice"
    return "; use one that exists"


def parameters_of(name: str, triton: TritonFacts) -> ast.arguments | None:
    """Return the parameters of a function of ``triton.language``; None if the judge does not state them."""
    text = triton.parameters.get(name)
    return None if text is None else _parsed(text)


@lru_cache(maxsize=512)
def _parsed(text: str) -> ast.arguments | None:
    tree = parsed(f"def function({text}): pass")
    defined = tree.body[0] if tree else None
    return defined.args if isinstance(defined, ast.FunctionDef) else None
