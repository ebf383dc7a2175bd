"""PyTorch operators as data: their calls, input shapes and output shapes.

An operand's rule is a pattern of dimensions, ``N C H W`` or ``* D`` (``*`` is any number of
leading dimensions). After a colon follows its content unless that is any float: ``L : int<V`` or
``* D : bool``. Choices of values, conditions and the output's dimensions are expressions over the
names that patterns and values bind, such as ``(H-k)//s+1``; an expression has no spaces.
"""

import ast
import random
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from adaexplore.core.text import arithmetic
from adaexplore.core.text.syntax import parse_expression

Shape = tuple[int, ...]
Bindings = dict[str, Any]

_DRAWS = 12


class RuleError(ValueError):
    """A rule is invalid; the message says which and why."""


class Operator(BaseModel):
    """One entry of a catalogue."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str  # unique name of this use of an operator
    family: str  # its family, such as ``activation`` or ``pooling``
    source: str = ""  # its path in torch; entries with one source count as one operator
    signature: str = ""
    call: str  # an expression over operands, values and dimensions; ``layer`` is the module
    module: str = ""  # the module's constructor, if there is one
    operands: dict[str, str]  # rules by name; the first one is the data flow
    output: str  # the rule of the result
    # choices for the other names of the expressions; later ones may use earlier ones
    values: dict[str, list[Any]] = Field(default_factory=dict)
    where: list[str] = Field(default_factory=list)  # conditions on the names
    # requirement on the first operand: ``positive``, ``unit`` (0 to 1), ``open`` (-1 to 1), ``bounded`` or
    # ``exact`` (an input of the model, not computed, so that rounding does not matter)
    needs: str = ""
    # property of the result: one of these, or ``keeps`` for that of the first operand
    gives: list[str] = Field(default_factory=list)
    holds: str = "float"  # content of the result

    def bind(self, shape: Shape, rng: random.Random) -> Bindings | None:
        """Bind all names for a first operand with ``shape``; None if it does not fit."""
        rules = list(self.operands.values())
        for _ in range(_DRAWS):
            bound = match(dimensions(rules[0]), shape)
            if bound is None:
                return None
            for name, choices in self.values.items():
                choice = rng.choice(choices)
                bound[name] = evaluate(choice, bound) if isinstance(choice, str) else choice
            if all(evaluate(condition, bound) for condition in self.where):
                return bound
        return None

    def shape_of(self, operand: str, bound: Mapping[str, Any]) -> Shape:
        return shape(dimensions(self.operands[operand]), bound)

    def result(self, bound: Mapping[str, Any]) -> Shape:
        return shape(self.output, bound)

    def content(self, operand: str, bound: Mapping[str, Any]) -> tuple[str, int]:
        """Return an operand's content, ``float``, ``positive``, ``bool`` ... and the bound of integers."""
        kind = self.operands[operand].partition(":")[2].strip() or "float"
        name, _, limit = kind.partition("<")
        return name, int(evaluate(limit, bound)) if limit else 0


def dimensions(rule: str) -> str:
    return rule.partition(":")[0].strip()


def match(pattern: str, shape: Shape) -> Bindings | None:
    """Bind the names of ``pattern`` to ``shape``, ``*`` to a tuple; None if it does not fit."""
    tokens = pattern.split()
    bound: Bindings = {}
    if "*" in tokens:
        if tokens[0] != "*" or len(shape) < len(tokens) - 1:
            return None
        leading = len(shape) - len(tokens) + 1
        bound["*"] = shape[:leading]
        tokens, shape = tokens[1:], shape[leading:]
    if len(tokens) != len(shape):
        return None
    for token, size in zip(tokens, shape, strict=True):
        if token.isidentifier():
            if bound.setdefault(token, size) != size:
                return None
        elif evaluate(token, bound) != size:
            return None
    return bound


def shape(pattern: str, bound: Mapping[str, Any]) -> Shape:
    sizes: list[int] = []
    for token in pattern.split():
        if token == "*":
            sizes += bound["*"]
        else:
            sizes.append(int(evaluate(token, bound)))
    return tuple(sizes)


def evaluate(text: str, bound: Mapping[str, Any]) -> Any:
    """Evaluate an expression over ``bound``; text in quotes is text.

    Raises:
        RuleError: the expression is invalid or has unbound names.
    """
    try:
        return arithmetic.evaluate(parse_expression(text.strip()).body, bound)
    except (SyntaxError, KeyError, TypeError, ValueError, ArithmeticError) as error:
        raise RuleError(f"cannot evaluate '{text}': {error}") from error


def written(expression: str, names: Mapping[str, str]) -> str:
    """Return ``expression`` with names replaced by their text in a program."""
    tree = parse_expression(expression.strip())
    known = {name: parse_expression(text).body for name, text in names.items() if name != "*"}

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return known.get(node.id, node)

    return ast.unparse(ast.fix_missing_locations(Replace().visit(tree)))
