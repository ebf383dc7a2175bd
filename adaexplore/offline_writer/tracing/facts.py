"""Facts about names of a reference module: constants, layers, parameters, inputs."""

from __future__ import annotations

import ast
import copy
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

from adaexplore.core.text.arithmetic import Number, operate
from adaexplore.core.text.syntax import imports, parse
from adaexplore.offline_writer.tracing.graph import HostKind, ScalarType

_MATH = {"math.pi": math.pi, "math.e": math.e, "math.inf": math.inf, "torch.pi": math.pi}
_MATH |= {"math.tau": math.tau, "torch.inf": math.inf}
_NUMBERS = ("int", "float")
_FUNCTIONS = {"math.sqrt": math.sqrt, "math.exp": math.exp, "math.log": math.log, "float": float}
_FLOATING = re.compile(r"\.(?:float|half)\(\)|torch\.b?float|torch\.half")
_BOOLEAN = re.compile(r"\bbool\b|isnan|logical_|[<>]|[=!]=")
_INTEGER = re.compile(
    r"rand(?:int|perm)|arange|bincount|\.arg\w+|torch\.u?int|torch\.long|\.(?:int|long)\(\)"
)


@dataclass(frozen=True)
class Kind:
    """Kind of a name's value: a tensor with its scalar type, a number, or something else."""

    kind: HostKind
    scalar_type: ScalarType = "f"


FLOATS, INTEGERS, SCALAR, OTHER = Kind("tensor"), Kind("tensor", "i"), Kind("scalar"), Kind("other")


@dataclass(frozen=True)
class Layer:
    """A submodule built by ``nn.<name>(...)``; ``parts`` are the members of a Sequential."""

    name: str
    call: ast.Call
    parts: tuple[Layer, ...] = ()


@dataclass(frozen=True)
class ClassFacts:
    """Attributes of one module class, and the arguments of its ``forward``."""

    node: ast.ClassDef
    layers: dict[str, Layer]
    attributes: dict[str, Kind]
    inputs: dict[str, Kind]


@dataclass(frozen=True)
class ModuleFacts:
    """A parsed reference module."""

    tree: ast.Module
    aliases: dict[str, str]
    numbers: dict[str, Number]
    classes: list[ClassFacts] = field(default_factory=list)

    def dotted(self, node: ast.expr) -> str:
        """Return ``torch.nn.functional.relu`` for ``F.relu``; empty if it is not a dotted name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.aliases.get(node.id, node.id), *reversed(parts)])

    def number(self, node: ast.expr) -> Number | None:
        """Return the value of an expression of literals, module constants and ``math``."""
        match node:
            case ast.Constant(value=bool() | int() | float() as literal):
                return literal
            case ast.Name(id=name) if name in self.numbers:
                return self.numbers[name]
            case ast.Attribute() if (name := self.dotted(node)) in _MATH:
                return _MATH[name]
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                negated = self.number(inner)
                return None if negated is None else -negated
            case ast.BinOp(left=left, op=operator, right=right):
                return operate(operator, self.number(left), self.number(right))
            case ast.Call(func=function, args=[argument], keywords=[]):
                known = _FUNCTIONS.get(self.dotted(function))
                value = argument.value if isinstance(argument, ast.Constant) else self.number(argument)
                try:
                    return None if known is None or value is None else known(value)  # type: ignore[arg-type]
                except (ArithmeticError, TypeError, ValueError):
                    return None
        return None


def parsed(source: str) -> ast.Module:
    """Parse a reference module; a plain function ``Model`` becomes a class with that ``forward``."""
    tree = parse(source)
    found = {item.name: item for item in tree.body if isinstance(item, ast.FunctionDef)}
    for number, item in enumerate(tree.body):
        match item:
            case ast.FunctionDef(name="Model"):
                plain: ast.FunctionDef | None = item
            case ast.Assign(targets=[ast.Name(id="Model")], value=ast.Name(id=name)):
                plain = found.get(name)
            case _:
                continue
        if plain is not None and not plain.decorator_list:
            tree.body[number] = _as_class(plain)
    return ast.fix_missing_locations(tree)


def _as_class(plain: ast.FunctionDef) -> ast.ClassDef:
    made = parse("import torch\n\nclass Model(torch.nn.Module):\n    def forward(self): ...").body[1]
    assert isinstance(made, ast.ClassDef)
    forward = copy.deepcopy(plain)
    forward.name = "forward"
    positional = forward.args.posonlyargs or forward.args.args
    positional.insert(0, ast.arg("self"))
    made.body = [forward]
    return made


def read_module(source: str) -> ModuleFacts:
    """Return the facts of a KernelBench-style module."""
    tree = parsed(source)
    facts = ModuleFacts(
        tree, {"F": "torch.nn.functional", "nn": "torch.nn"} | dict(imports(ast.walk(tree))), {}
    )
    for statement in tree.body:
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            number = facts.number(statement.value)
            if number is not None:
                facts.numbers[statement.targets[0].id] = number
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and "torch.nn.Module" in map(facts.dotted, statement.bases):
            facts.classes.append(_read_class(facts, statement))
    return facts


def function(node: ast.ClassDef | ast.Module, name: str) -> ast.FunctionDef | None:
    return next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == name), None)


@dataclass(frozen=True)
class _Given:
    """What a module-level function returns, with resolved names; empty if unknown."""

    positions: tuple[ast.expr, ...] = ()
    words: Mapping[str, ast.expr] = field(default_factory=dict)

    def of(self, position: int, name: str) -> ast.expr | None:
        """Return the value of the parameter of this name, counted from 0 after ``self``; None without one."""
        return self.positions[position] if position < len(self.positions) else self.words.get(name)


def _returned(facts: ModuleFacts, name: str) -> _Given:
    statements = list(ast.walk(function(facts.tree, name) or ast.Pass()))
    known: dict[str, ast.expr] = {}
    for statement in statements:
        match statement:
            case ast.Assign(targets=[ast.Name(id=target)], value=value):
                known[target] = value

    def resolved(part: ast.expr) -> ast.expr:
        return known.get(part.id, part) if isinstance(part, ast.Name) else part

    def words(given: ast.Dict) -> dict[str, ast.expr]:
        pairs = zip(given.keys, map(resolved, given.values), strict=True)
        return {key.value: value for key, value in pairs if isinstance(key, ast.Constant)}

    for statement in statements:
        match resolved(statement.value) if isinstance(statement, ast.Return) and statement.value else None:
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                match [resolved(part) for part in parts]:
                    case [ast.List(elts=first) | ast.Tuple(elts=first), ast.Dict() as second]:
                        return _Given(tuple(map(resolved, first)), words(second))
                    case found:
                        return _Given(tuple(found))
            case ast.Dict() as given:
                return _Given((), words(given))
            case ast.Call() as single:
                return _Given((single,))
    return _Given()


def _parameters(node: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None]]:
    """Return the parameters after ``self`` with their defaults, those given by keyword alone last."""
    missing = [None] * (len(node.args.args) - len(node.args.defaults))
    positional = list(zip(node.args.args, chain(missing, node.args.defaults), strict=True))[1:]
    return positional + list(zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True))


def _read_class(facts: ModuleFacts, node: ast.ClassDef) -> ClassFacts:
    main = node.name == "Model"
    given = _returned(facts, "get_init_inputs") if main else _Given()
    names: dict[str, Kind] = {}
    constructor = function(node, "__init__")
    for position, (parameter, default) in enumerate(_parameters(constructor) if constructor else ()):
        value = given.of(position, parameter.arg) or default
        kind = OTHER if value is None else _kind_of(facts, value, names)
        names[parameter.arg] = SCALAR if kind == OTHER and _annotation(parameter) in _NUMBERS else kind
    layers: dict[str, Layer] = {}
    attributes: dict[str, Kind] = {}
    for name, value in _assignments(constructor):
        layer = _layer(facts, value)
        if name in layers or name in attributes:
            layers.pop(name, None)
            attributes[name] = OTHER
        elif layer is not None:
            layers[name] = layer
        else:
            attributes[name] = _kind_of(facts, value, names | attributes)
    return ClassFacts(node, layers, attributes, _inputs(facts, node, main))


def _assignments(constructor: ast.FunctionDef | None) -> Iterator[tuple[str, ast.expr]]:
    for statement in ast.walk(constructor) if constructor is not None else ():
        match statement:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=name)], value=value):
                yield name, value
            case ast.Call(
                func=ast.Attribute(value=ast.Name(id="self"), attr="register_buffer" | "register_parameter"),
                args=[ast.Constant(value=str() as name), value, *_],
            ):
                yield name, value


def _annotation(parameter: ast.arg) -> str:
    return ast.unparse(parameter.annotation) if parameter.annotation else ""


def _layer(facts: ModuleFacts, node: ast.expr) -> Layer | None:
    name = facts.dotted(node.func) if isinstance(node, ast.Call) else ""
    if not name.startswith("torch.nn.") or name.count(".") != 2 or name == "torch.nn.Parameter":
        return None
    assert isinstance(node, ast.Call)
    parts: tuple[Layer, ...] = ()
    if name == "torch.nn.Sequential":
        if any(isinstance(argument, ast.Starred | ast.GeneratorExp) for argument in node.args):
            return Layer("", node)
        parts = tuple(_layer(facts, argument) or Layer("", node) for argument in node.args)
    return Layer(name.removeprefix("torch.nn."), node, parts)


def _kind_of(facts: ModuleFacts, node: ast.expr, names: dict[str, Kind]) -> Kind:
    """Return the kind of an expression of the constructor or of ``get_init_inputs``."""
    if facts.number(node) is not None:
        return SCALAR
    match node:
        case ast.Name(id=name) | ast.Attribute(value=ast.Name(id="self"), attr=name):
            return names.get(name, OTHER)
        case ast.UnaryOp(operand=inner):
            return _kind_of(facts, inner, names)
        case ast.BinOp(left=left, right=right):
            numeric = all(_kind_of(facts, side, names) == SCALAR for side in (left, right))
            return SCALAR if numeric else OTHER
        case ast.Call(func=called):
            name = facts.dotted(called)
            if name.startswith("math.") or name in ("int", "float", "len", "round"):
                return SCALAR
            if name == "torch.nn.Parameter" or (name.startswith("torch.") and ".nn." not in name):
                return tensor_kind(ast.unparse(node))
            if isinstance(called, ast.Attribute) and _kind_of(facts, called.value, names).kind == "tensor":
                return tensor_kind(ast.unparse(node))
    return OTHER


def _inputs(facts: ModuleFacts, node: ast.ClassDef, main: bool) -> dict[str, Kind]:
    forward = function(node, "forward")
    given = _returned(facts, "get_inputs") if main else _Given()
    inputs: dict[str, Kind] = {}
    for position, (parameter, default) in enumerate(_parameters(forward) if forward else ()):
        drawn = given.of(position, parameter.arg)
        value = drawn or default
        if _annotation(parameter) in _NUMBERS or (value is not None and facts.number(value) is not None):
            inputs[parameter.arg] = SCALAR
        elif drawn is not None:
            inputs[parameter.arg] = tensor_kind(ast.unparse(drawn))
        else:
            plain = default is None and _annotation(parameter) in ("", "torch.Tensor", "Tensor")
            inputs[parameter.arg] = FLOATS if plain else OTHER
    return inputs


def tensor_kind(text: str) -> Kind:
    """Return the kind of tensor that an expression such as ``torch.randint(...)`` makes or a dtype names."""
    if _FLOATING.search(text):
        return FLOATS
    if _BOOLEAN.search(text):
        return Kind("tensor", "b")
    return INTEGERS if _INTEGER.search(text) else FLOATS
