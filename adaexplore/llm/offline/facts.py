"""What a reference module says about its names: constants, layers, parameters, inputs."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

from adaexplore.core.arithmetic import Number, operate
from adaexplore.core.syntax import parse
from adaexplore.llm.offline.graph import HostKind, ScalarType

_MATH = {"math.pi": math.pi, "math.e": math.e, "math.inf": math.inf, "torch.pi": math.pi}
_MATH |= {"math.tau": math.tau, "torch.inf": math.inf}
_INTEGER_TYPES = ("int64", "int32", "int16", "int8", "uint8", "long", "int")


@dataclass(frozen=True)
class Kind:
    """What a name holds: a tensor (of which scalars), a number, or something else."""

    kind: HostKind
    scalar_type: ScalarType = "f"


@dataclass(frozen=True)
class Layer:
    """A submodule built by ``nn.<name>(...)``; ``parts`` are the members of a Sequential."""

    name: str
    call: ast.Call
    parts: tuple[Layer, ...] = ()


@dataclass(frozen=True)
class ClassFacts:
    """What one module class holds under ``self``, and what its ``forward`` is given."""

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
        """``torch.nn.functional.relu`` for ``F.relu``; empty where it is no dotted name."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.append(node.attr)
            node = node.value
        if not isinstance(node, ast.Name):
            return ""
        return ".".join([self.aliases.get(node.id, node.id), *reversed(parts)])

    def number(self, node: ast.expr) -> Number | None:
        """The value of an expression of literals, module constants and ``math``."""
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
                return _function(self.dotted(function), argument, self.number(argument))
        return None


def _function(name: str, argument: ast.expr, value: Number | None) -> Number | None:
    if name == "float" and isinstance(argument, ast.Constant) and isinstance(argument.value, str):
        try:
            return float(argument.value)
        except ValueError:
            return None
    functions = {"math.sqrt": math.sqrt, "math.exp": math.exp, "math.log": math.log, "float": float}
    if value is None or name not in functions:
        return None
    try:
        return functions[name](value)
    except (ArithmeticError, ValueError):
        return None


def read_module(source: str) -> ModuleFacts:
    """Facts of a KernelBench-style module.

    Raises:
        SyntaxError: ``source`` is not Python.
    """
    tree = parse(source)
    facts = ModuleFacts(tree, _aliases(tree), {})
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                facts.numbers.update(_named_numbers(facts, target, statement.value))
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and _is_module(facts, statement):
            facts.classes.append(_read_class(facts, statement))
    return facts


def _named_numbers(facts: ModuleFacts, target: ast.expr, value: ast.expr) -> dict[str, Number]:
    """Names that an assignment gives to numbers."""
    number = facts.number(value)
    if isinstance(target, ast.Name) and number is not None:
        return {target.id: number}
    found: dict[str, Number] = {}
    if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts):
        for inner, part in zip(target.elts, value.elts, strict=True):
            found |= _named_numbers(facts, inner, part)
    return found


def _aliases(tree: ast.Module) -> dict[str, str]:
    aliases = {"F": "torch.nn.functional", "nn": "torch.nn"}
    for statement in ast.walk(tree):
        if isinstance(statement, ast.Import):
            for name in statement.names:
                aliases[name.asname or name.name.split(".")[0]] = (
                    name.name if name.asname else name.name.split(".")[0]
                )
        elif isinstance(statement, ast.ImportFrom) and statement.module:
            for name in statement.names:
                aliases[name.asname or name.name] = f"{statement.module}.{name.name}"
    return aliases


def _is_module(facts: ModuleFacts, node: ast.ClassDef) -> bool:
    return any(facts.dotted(base) == "torch.nn.Module" for base in node.bases)


def function(node: ast.ClassDef | ast.Module, name: str) -> ast.FunctionDef | None:
    """The function or method ``name``, if there is one."""
    return next((item for item in node.body if isinstance(item, ast.FunctionDef) and item.name == name), None)


def _returned(facts: ModuleFacts, name: str) -> list[ast.expr] | None:
    """The list that a module-level function returns, names within it resolved."""
    found = function(facts.tree, name)
    if found is None:
        return None
    known = {
        target.id: statement.value
        for statement in ast.walk(found)
        if isinstance(statement, ast.Assign)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    for statement in ast.walk(found):
        if isinstance(statement, ast.Return) and isinstance(statement.value, ast.List | ast.Tuple):
            return [
                known.get(item.id, item) if isinstance(item, ast.Name) else item
                for item in statement.value.elts
            ]
    return None


def _parameters(node: ast.FunctionDef) -> list[tuple[ast.arg, ast.expr | None]]:
    """Parameters after ``self`` with their defaults."""
    positional = [*node.args.posonlyargs, *node.args.args]
    missing = len(positional) - len(node.args.defaults)
    defaults: list[ast.expr | None] = [None] * missing + list(node.args.defaults)
    pairs = list(zip(positional, defaults, strict=True))[1:]
    return pairs + list(zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True))


def _read_class(facts: ModuleFacts, node: ast.ClassDef) -> ClassFacts:
    main = node.name == "Model"
    given = _returned(facts, "get_init_inputs") if main else None
    names: dict[str, Kind] = {}
    constructor = function(node, "__init__")
    if constructor is not None:
        for position, (parameter, default) in enumerate(_parameters(constructor)):
            value = given[position] if given is not None and position < len(given) else default
            kind = _kind_of(facts, value, names, parameter.annotation)
            if kind.kind == "other":
                kind = _kind_of(facts, None, names, parameter.annotation)
            names[parameter.arg] = kind
    layers: dict[str, Layer] = {}
    attributes: dict[str, Kind] = {}
    ambiguous: set[str] = set()
    for name, value in _assignments(constructor):
        if name in layers or name in attributes:
            ambiguous.add(name)
        layer = _layer(facts, value)
        if layer is not None:
            layers[name] = layer
        else:
            attributes[name] = _kind_of(facts, value, names | attributes, None)
    for name in ambiguous:
        layers.pop(name, None)
        attributes[name] = Kind("other")
    return ClassFacts(node, layers, attributes, _inputs(facts, node, main))


def _assignments(constructor: ast.FunctionDef | None) -> Iterator[tuple[str, ast.expr]]:
    for statement in ast.walk(constructor) if constructor is not None else ():
        if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
            for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
                match target:
                    case ast.Attribute(value=ast.Name(id="self"), attr=name):
                        yield name, statement.value
        elif isinstance(statement, ast.Call) and len(statement.args) > 1:
            match statement:
                case ast.Call(
                    func=ast.Attribute(
                        value=ast.Name(id="self"), attr="register_buffer" | "register_parameter"
                    ),
                    args=[ast.Constant(value=str() as name), value, *_],
                ):
                    yield name, value


def _layer(facts: ModuleFacts, node: ast.expr) -> Layer | None:
    if not isinstance(node, ast.Call):
        return None
    name = facts.dotted(node.func)
    if not name.startswith("torch.nn.") or name.count(".") != 2 or name == "torch.nn.Parameter":
        return None
    parts: list[Layer] = []
    if name == "torch.nn.Sequential":
        for argument in node.args:
            part = _layer(facts, argument)
            parts.append(part or Layer("", ast.Call(ast.Name("unknown"), [], [])))
            if isinstance(argument, ast.Starred | ast.GeneratorExp):
                return Layer("", node)
    return Layer(name.removeprefix("torch.nn."), node, tuple(parts))


def _kind_of(
    facts: ModuleFacts, node: ast.expr | None, names: dict[str, Kind], annotation: ast.expr | None
) -> Kind:
    """What an expression of the constructor or of ``get_init_inputs`` is."""
    if node is None:
        text = ast.unparse(annotation) if annotation is not None else ""
        return Kind("scalar") if text in ("int", "float") else Kind("other")
    if facts.number(node) is not None:
        return Kind("scalar")
    match node:
        case ast.Name(id=name):
            return names.get(name, Kind("other"))
        case ast.Attribute(value=ast.Name(id="self"), attr=name):
            return names.get(name, Kind("other"))
        case ast.UnaryOp(operand=inner):
            return _kind_of(facts, inner, names, None)
        case ast.BinOp(left=left, right=right):
            kinds = [_kind_of(facts, side, names, None) for side in (left, right)]
            numeric = all(kind.kind == "scalar" for kind in kinds)
            return Kind("scalar") if numeric else Kind("other")
        case ast.Call():
            called = facts.dotted(node.func)
            if called == "torch.nn.Parameter" and node.args:
                return Kind("tensor", tensor_type(facts, node.args[0]))
            if called.startswith("math.") or called in ("int", "float", "len", "round"):
                return Kind("scalar")
            if called.startswith("torch.") and not called.startswith("torch.nn."):
                return Kind("tensor", tensor_type(facts, node))
            if (
                isinstance(node.func, ast.Attribute)
                and _kind_of(facts, node.func.value, names, None).kind == "tensor"
            ):
                return Kind("tensor", tensor_type(facts, node))
    return Kind("other")


def _inputs(facts: ModuleFacts, node: ast.ClassDef, main: bool) -> dict[str, Kind]:
    forward = function(node, "forward")
    if forward is None:
        return {}
    given = _returned(facts, "get_inputs") if main else None
    inputs: dict[str, Kind] = {}
    for position, (parameter, default) in enumerate(_parameters(forward)):
        annotation = ast.unparse(parameter.annotation) if parameter.annotation else ""
        if given is not None and position < len(given):
            value = given[position]
            numeric = facts.number(value) is not None
            inputs[parameter.arg] = Kind("scalar") if numeric else Kind("tensor", tensor_type(facts, value))
        elif annotation in ("int", "float") or (default is not None and facts.number(default) is not None):
            inputs[parameter.arg] = Kind("scalar")
        elif default is not None or annotation not in ("", "torch.Tensor", "Tensor"):
            inputs[parameter.arg] = Kind("other")
        else:
            inputs[parameter.arg] = Kind("tensor")
    return inputs


def tensor_type(facts: ModuleFacts, node: ast.expr) -> ScalarType:
    """Scalars of the tensor that an expression such as ``torch.randint(...)`` makes."""
    match node:
        case ast.Compare():
            return "b"
        case ast.UnaryOp(operand=inner):
            return tensor_type(facts, inner)
        case ast.BinOp(left=left, op=operator, right=right):
            types = {tensor_type(facts, side) for side in (left, right) if facts.number(side) is None}
            if "f" in types or isinstance(operator, ast.Div):
                return "f"
            return "i" if "i" in types else "b" if types else "f"
        case ast.Call(func=called, keywords=keywords, args=arguments):
            for keyword in keywords:
                if keyword.arg == "dtype":
                    return dtype_type(ast.unparse(keyword.value))
            name = called.attr if isinstance(called, ast.Attribute) else ""
            if name in ("bool", "long", "int", "float", "half"):
                return dtype_type(name)
            if name in ("to", "type") and arguments and "." in ast.unparse(arguments[0]):
                return dtype_type(ast.unparse(arguments[0]))
            full = facts.dotted(called)
            if full.startswith("torch."):
                if name in ("randint", "arange", "randperm", "bincount", "argmax", "argsort"):
                    return "i"
                if name in ("tril", "triu", "Parameter", "flip", "clone", "abs", "roll") and arguments:
                    return tensor_type(facts, arguments[0])
                return "b" if name in ("isnan", "logical_not", "logical_and", "bernoulli_mask") else "f"
            if isinstance(called, ast.Attribute):
                return tensor_type(facts, called.value)
        case ast.Attribute(value=inner) | ast.Subscript(value=inner):
            return tensor_type(facts, inner)
    return "f"


def dtype_type(text: str) -> ScalarType:
    """Scalar type of a dtype's spelling."""
    name = text.rsplit(".", 1)[-1]
    return "b" if name == "bool" else "i" if name in _INTEGER_TYPES else "f"
