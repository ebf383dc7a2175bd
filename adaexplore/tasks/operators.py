"""PyTorch operators as data: how they are called, which shapes they take, which they give.

An operand's rule is a pattern of dimensions, ``N C H W`` or ``* D`` (``*`` stands for any number of
leading dimensions), and after a colon what it holds where that is not any float: ``L : int<V`` or
``* D : bool``. Values to choose from, conditions and the output's dimensions are expressions over the
names that patterns and values bind, such as ``(H-k)//s+1``; an expression has no spaces.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from adaexplore.core.arithmetic import Number, compare, operate
from adaexplore.core.syntax import parse_expression

Shape = tuple[int, ...]
Bindings = dict[str, Any]

_DRAWS = 12


class RuleError(ValueError):
    """A rule that cannot be read; says which and why."""


class Operator(BaseModel):
    """One entry of a catalogue.

    Attributes:
        name: of this way to use it, unlike any other's.
        family: such as ``activation`` or ``pooling``.
        source: where torch has it; entries of one source count as one operator.
        signature: as torch tells it.
        call: an expression over operands, values and dimensions; ``layer`` is the module.
        module: the module's constructor, where there is one.
        operands: rules by name, the first one is what flows through.
        output: the rule of the result.
        values: choices for the other names of the expressions, later ones may use earlier ones.
        where: conditions that names must meet.
        needs: of the first operand: ``positive``, ``unit`` (0 to 1), ``open`` (-1 to 1), ``bounded`` or
            ``exact`` (not computed: an input of the model, so that rounding cannot change a step).
        gives: of the result: of these, or ``keeps`` for what the first operand had.
        holds: what the result holds.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    family: str
    source: str = ""
    signature: str = ""
    call: str
    module: str = ""
    operands: dict[str, str]
    output: str
    values: dict[str, list[Any]] = Field(default_factory=dict)
    where: list[str] = Field(default_factory=list)
    needs: str = ""
    gives: list[str] = Field(default_factory=list)
    holds: str = "float"

    def bind(self, shape: Shape, rng: random.Random) -> Bindings | None:
        """Values for all names where the first operand has ``shape``; None where it does not fit."""
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
        """The shape that an operand must have."""
        return shape(dimensions(self.operands[operand]), bound)

    def result(self, bound: Mapping[str, Any]) -> Shape:
        """The shape of the result."""
        return shape(self.output, bound)

    def content(self, operand: str, bound: Mapping[str, Any]) -> tuple[str, int]:
        """What an operand holds, ``float``, ``positive``, ``bool`` ... and the bound of integers."""
        kind = self.operands[operand].partition(":")[2].strip() or "float"
        name, _, limit = kind.partition("<")
        return name, int(evaluate(limit, bound)) if limit else 0


def dimensions(rule: str) -> str:
    """The pattern of an operand's rule."""
    return rule.partition(":")[0].strip()


def match(pattern: str, shape: Shape) -> Bindings | None:
    """Names of ``pattern`` bound to ``shape``, ``*`` to a tuple; None where it does not fit."""
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
    """The shape that ``pattern`` stands for."""
    sizes: list[int] = []
    for token in pattern.split():
        if token == "*":
            sizes += bound["*"]
        else:
            sizes.append(int(evaluate(token, bound)))
    return tuple(sizes)


def evaluate(text: str, bound: Mapping[str, Any]) -> Any:
    """The value of an expression over ``bound``; text in quotes is text.

    Raises:
        RuleError: it is no such expression, or has names that are not bound.
    """
    try:
        return _value(parse_expression(text.strip()).body, bound)
    except (SyntaxError, KeyError, TypeError, ArithmeticError) as error:
        raise RuleError(f"cannot evaluate '{text}': {error}") from error


def _value(node: ast.expr, bound: Mapping[str, Any]) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return bound[name]
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, bound)
        case ast.BinOp(left=left, op=op, right=right):
            return _known(node, operate(op, _value(left, bound), _value(right, bound)))
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _known(node, compare(op, _value(left, bound), _value(right, bound)))
        case ast.BoolOp(op=ast.And(), values=parts):
            return all(_value(part, bound) for part in parts)
        case ast.Tuple(elts=parts):
            return tuple(_value(part, bound) for part in parts)
        case ast.Call(func=ast.Name(id="min" | "max" as name), args=parts):
            return (min if name == "min" else max)(_value(part, bound) for part in parts)
    raise TypeError(f"no {type(node).__name__} in rules")


def _known(node: ast.expr, result: Number | None) -> Number:
    if result is None:
        raise TypeError(f"{ast.unparse(node)} has no value")
    return result


def written(expression: str, names: Mapping[str, str]) -> str:
    """``expression`` with names replaced by what they stand for in a program."""
    tree = parse_expression(expression.strip())
    known = {name: parse_expression(text).body for name, text in names.items() if name != "*"}

    class Replace(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return known.get(node.id, node)

    return ast.unparse(ast.fix_missing_locations(Replace().visit(tree)))
