"""The catalogue of operators: read it, draw from it, and find its operators in a problem's source."""

import ast
import random
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from adaexplore.core.errors import UsageError
from adaexplore.core.files.inputs import first_fault, input_bytes
from adaexplore.core.text.syntax import parsed
from adaexplore.tasks.operators import Operator

WEIGHTS: Mapping[str, float] = {
    "activation": 3.0, "elementwise": 3.0, "normalisation": 2.5, "reduction": 2.5, "matrix": 2.5,
    "softmax": 1.5, "convolution": 1.2, "indexing": 1.2, "layout": 1.2, "pooling": 1.0, "loss": 1.0,
    "attention": 0.8, "cumulative": 0.8, "padding": 0.7, "distance": 0.6, "interpolation": 0.6,
    "comparison": 0.5, "special": 0.4, "recurrent": 0.2,
}  # fmt: skip
"""Weights of families in draws; other families have the smallest of these weights."""

_SYMBOLS = {
    ast.Add: "add",
    ast.Sub: "sub",
    ast.Mult: "mul",
    ast.Div: "div",
    ast.MatMult: "matmul",
    ast.Pow: "pow",
}


class Catalogue(BaseModel):
    """The operators of one version of torch."""

    model_config = ConfigDict(frozen=True)

    torch: str
    operators: tuple[Operator, ...]

    def draw(self, count: int, rng: random.Random) -> list[Operator]:
        """Draw different entries, families by their weights."""
        families: dict[str, list[Operator]] = {}
        for entry in self.operators:
            families.setdefault(entry.family, []).append(entry)
        drawn: list[Operator] = []
        while len(drawn) < min(count, len(self.operators)):
            names = [name for name, entries in families.items() if entries]
            weights = [WEIGHTS.get(name, min(WEIGHTS.values())) for name in names]
            entries = families[rng.choices(names, weights)[0]]
            drawn.append(entries.pop(rng.randrange(len(entries))))
        return drawn

    def operators_in(self, source: str) -> list[str]:
        """Return the operators that ``Model`` in ``source`` calls, by their path in torch."""
        known = {entry.source for entry in self.operators}
        layers = {
            f"torch.{entry.module.partition('(')[0]}": entry.source
            for entry in self.operators
            if entry.module
        }
        by_method = {source.rsplit(".", 1)[1]: source for source in sorted(known, reverse=True)}
        found = set()
        for name in _called(source):
            if name in layers:
                found.add(layers[name])
            elif name in known:
                found.add(name)
            elif name.startswith(".") and name[1:] in by_method:
                found.add(by_method[name[1:]])
        return sorted(found)


def read_catalogue(path: Path | None = None) -> Catalogue:
    """Read the catalogue in ``path``, or the bundled one.

    Raises:
        UsageError: it cannot be read.
    """
    if path is None:
        return _own()
    try:
        return Catalogue.model_validate_json(input_bytes(path, "catalogue of operators"))
    except ValidationError as error:
        raise UsageError(f"cannot read the catalogue of operators {path}: {first_fault(error)}") from error


@cache
def _own() -> Catalogue:
    return Catalogue.model_validate_json(files("synthesis").joinpath("operators.json").read_bytes())


def _called(source: str) -> Iterator[str]:
    """Yield the dotted names of calls, ``.name`` for methods, torch's names for arithmetic."""
    aliases = {"F": "torch.nn.functional", "nn": "torch.nn", "torch": "torch"}
    tree = parsed(source)
    if tree is None:
        return
    methods = [
        method
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
        for method in node.body
        if isinstance(method, ast.FunctionDef)
    ]
    for method in methods:
        for node in ast.walk(method):
            if isinstance(node, ast.Call):
                name = _dotted(node.func, aliases)
                if method.name != "__init__" or name.startswith("torch.nn."):
                    yield name
            elif isinstance(node, ast.BinOp) and type(node.op) in _SYMBOLS and method.name != "__init__":
                yield f"torch.{_SYMBOLS[type(node.op)]}"


def _dotted(node: ast.expr, aliases: Mapping[str, str]) -> str:
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    if isinstance(node, ast.Name) and node.id in aliases:
        return ".".join([aliases[node.id], *reversed(parts)])
    return f".{parts[0]}" if parts else ""
