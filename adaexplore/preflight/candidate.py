"""A candidate's module: its imports, its kernels, its functions and classes."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from adaexplore.core.syntax import parse
from adaexplore.preflight.bindings import argument, assigned, bound_names, imports, statements
from adaexplore.preflight.constants import UNKNOWN, compare, operate, too_long

JIT = ("triton.jit", "triton.runtime.jit", "triton.runtime.jit.jit")
AUTOTUNE = ("triton.autotune", "triton.runtime.autotune", "triton.runtime.autotuner.autotune")
HEURISTICS = ("triton.heuristics", "triton.runtime.heuristics", "triton.runtime.autotuner.heuristics")
CONFIG = ("triton.Config", "triton.runtime.Config", "triton.runtime.autotuner.Config")
CONSTEXPR = ("triton.language.constexpr", "triton.language.core.constexpr")

_DEPTH = 8
_CONVERSIONS: Mapping[str, type[bool] | type[int] | type[float]] = {"bool": bool, "int": int, "float": float}

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Parameter:
    """A kernel's parameter; ``default`` is None where there is none."""

    name: str
    constexpr: bool
    default: ast.expr | None


@dataclass(frozen=True)
class Tuning:
    """One autotune configuration: values by parameter, and launch options; values may be UNKNOWN."""

    values: Mapping[str, object]
    options: Mapping[str, object]
    line: int


@dataclass(frozen=True)
class Kernel:
    """A function with ``@triton.jit``.

    Attributes:
        node: its definition.
        parameters: in order.
        tuned: whether it is autotuned.
        configs: its configurations; None where the code computes them.
        pruned: a function chooses among the configurations.
        filled: parameters that heuristics fill in; None where they cannot be told.
    """

    node: ast.FunctionDef
    parameters: tuple[Parameter, ...]
    tuned: bool
    configs: tuple[Tuning, ...] | None
    pruned: bool
    filled: frozenset[str] | None

    @property
    def name(self) -> str:
        """Its name."""
        return self.node.name


class Candidate:
    """The module's definitions."""

    def __init__(self, source: str) -> None:
        """Parse and look through the module's own statements; nothing is run.

        Raises:
            SyntaxError, ValueError, RecursionError: it is not valid Python.
        """
        self.source = source
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tree = tree = parse(source)
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and too_long(node.value):
                node.value = UNKNOWN  # type: ignore[assignment]
        self.star_import = any(
            isinstance(node, ast.ImportFrom) and node.names[0].name == "*" for node in ast.walk(tree)
        )
        self.paths = dict(imports(ast.walk(tree)))
        self.bindings: dict[str, list[ast.AST]] = {}
        for node in statements(tree.body):
            for name in bound_names(node):
                self.bindings.setdefault(name, []).append(node)
        self.functions = {
            name: nodes[0]
            for name, nodes in self.bindings.items()
            if len(nodes) == 1 and isinstance(nodes[0], ast.FunctionDef)
        }
        self.classes = {
            name: nodes[0]
            for name, nodes in self.bindings.items()
            if len(nodes) == 1 and isinstance(nodes[0], ast.ClassDef)
        }

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """Jitted functions of the module, by name."""
        found = {name: self._kernel(node) for name, node in self.functions.items()}
        return {name: kernel for name, kernel in found.items() if kernel is not None}

    def path(self, node: ast.expr) -> str | None:
        """The dotted path that an expression names through imports, such as ``triton.language.load``."""
        if isinstance(node, ast.Name):
            return (
                self.paths.get(node.id) if node.id not in self.bindings or self._imported(node.id) else None
            )
        if isinstance(node, ast.Attribute):
            base = self.path(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None

    def _imported(self, name: str) -> bool:
        return all(isinstance(node, ast.Import | ast.ImportFrom) for node in self.bindings.get(name, ()))

    def constant(self, node: ast.expr | None, scope: Mapping[str, object] | None = None) -> object:
        """The value of an expression of literals, module constants and names of ``scope``, or UNKNOWN."""
        try:
            return self._value(node, scope or {}, 0)
        except (ArithmeticError, TypeError, ValueError):
            return UNKNOWN

    def _value(self, node: ast.expr | None, scope: Mapping[str, object], depth: int) -> object:
        match node:
            case ast.Constant(value=literal):
                return literal
            case ast.Name(id=name) if name in scope:
                return scope[name]
            case ast.Name(id=name) if depth < _DEPTH and len(self.bindings.get(name, ())) == 1:
                bound = self.bindings[name][0]
                if isinstance(bound, ast.Assign | ast.AnnAssign) and not self._rebound(name):
                    return self._value(assigned(bound, name), {}, depth + 1)
                return UNKNOWN
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return scope.get(f"self.{name}", UNKNOWN)
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _CONVERSIONS:
                value = self._value(inner, scope, depth)
                return _CONVERSIONS[name](value) if isinstance(value, bool | int | float) else UNKNOWN
            case ast.Compare(left=left, ops=[way], comparators=[right]):
                return compare(way, self._value(left, scope, depth), self._value(right, scope, depth))
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                known = self._value(test, scope, depth)
                return (
                    UNKNOWN if known is UNKNOWN else self._value(then if known else otherwise, scope, depth)
                )
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                value = self._value(inner, scope, depth)
                return -value if isinstance(value, int | float) else UNKNOWN
            case ast.BinOp(left=left, op=operator, right=right):
                return operate(operator, self._value(left, scope, depth), self._value(right, scope, depth))
            case ast.Call(func=called, args=[argument], keywords=[]):
                value = self._value(argument, scope, depth)
                if isinstance(value, int) and value > 0 and self.path(called) == "triton.next_power_of_2":
                    return 1 << (value - 1).bit_length()
                if self.path(called) in CONSTEXPR:
                    return value
                return UNKNOWN
            case _:
                return UNKNOWN

    def _rebound(self, name: str) -> bool:
        """Whether a function changes a module's variable."""
        return any(isinstance(node, ast.Global) and name in node.names for node in ast.walk(self.tree))

    def _kernel(self, node: ast.AST) -> Kernel | None:
        if not isinstance(node, ast.FunctionDef):
            return None
        jitted = tuned = pruned = False
        configs: tuple[Tuning, ...] | None = ()
        filled: frozenset[str] | None = frozenset()
        for each in node.decorator_list:
            path = self.path(each.func if isinstance(each, ast.Call) else each)
            if path in JIT:
                jitted = True
            elif path in AUTOTUNE and isinstance(each, ast.Call):
                tuned = True
                given = argument(each, 0, "configs")
                configs = self._configs(given)
                pruned = any(word.arg in (None, "prune_configs_by") for word in each.keywords)
            elif path in HEURISTICS and isinstance(each, ast.Call):
                told = argument(each, 0, "values")
                names = _literal_keys(told)
                filled = None if names is None or filled is None else filled | names
            else:  # a decorator of unknown effect
                return None
        if not jitted:
            return None
        return Kernel(node, tuple(self._parameters(node.args)), tuned, configs, pruned, filled)

    def _parameters(self, given: ast.arguments) -> Iterator[Parameter]:
        names = [*given.posonlyargs, *given.args]
        defaults: list[ast.expr | None] = [None] * (len(names) - len(given.defaults))
        defaults += given.defaults
        for arg, default in zip(names, defaults, strict=True):
            yield Parameter(arg.arg, self.is_constexpr(arg.annotation), default)
        for arg, default in zip(given.kwonlyargs, given.kw_defaults, strict=True):
            yield Parameter(arg.arg, self.is_constexpr(arg.annotation), default)

    def configs_in(self, name: str) -> bool:
        """Whether a module variable is a list of ``triton.Config``."""
        return bool(self._configs(ast.Name(name, ast.Load())))

    def is_constexpr(self, annotation: ast.expr | None) -> bool:
        """Whether an annotation says ``tl.constexpr``."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            return "constexpr" in annotation.value
        return annotation is not None and self.path(annotation) in CONSTEXPR

    def _configs(self, node: ast.expr | None) -> tuple[Tuning, ...] | None:
        if isinstance(node, ast.Name) and len(self.bindings.get(node.id, ())) == 1:
            bound = self.bindings[node.id][0]
            if any(
                isinstance(each, ast.Attribute) and ast.unparse(each.value) == node.id
                for each in ast.walk(self.tree)
            ):  # filled later
                return None
            node = assigned(bound, node.id) if isinstance(bound, ast.Assign | ast.AnnAssign) else None
        if not isinstance(node, ast.List | ast.Tuple):
            return None
        found = []
        for each in node.elts:
            if not (isinstance(each, ast.Call) and self.path(each.func) in CONFIG):
                return None
            values = argument(each, 0, "kwargs")
            if not isinstance(values, ast.Dict) or any(
                not isinstance(key, ast.Constant) for key in values.keys
            ):
                return None
            pairs = zip(values.keys, values.values, strict=True)
            words = {word.arg: word.value for word in each.keywords if word.arg and word.arg != "kwargs"}
            words |= dict(zip(("num_warps", "num_stages"), each.args[1:3], strict=False))
            found.append(
                Tuning(
                    {
                        str(key.value): self.constant(value)
                        for key, value in pairs
                        if isinstance(key, ast.Constant)
                    },
                    {name: self.constant(value) for name, value in words.items()},
                    each.lineno,
                )
            )
        return tuple(found)


def _literal_keys(node: ast.expr | None) -> frozenset[str] | None:
    if not isinstance(node, ast.Dict):
        return None
    keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return frozenset(keys) if len(keys) == len(node.keys) else None
