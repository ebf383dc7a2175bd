"""A candidate's module: its imports, its kernels, its functions and classes."""

import ast
import symtable
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from adaexplore.core.text.arithmetic import compare, operate
from adaexplore.core.text.syntax import bound_names, imports, parse, statements
from adaexplore.preflight.bindings import argument, assigned

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
    """A kernel's parameter; ``default`` is None without one."""

    name: str
    constexpr: bool
    default: ast.expr | None


@dataclass(frozen=True)
class Tuning:
    """One autotune configuration: the parameters that it sets, ``num_warps`` if known, its line."""

    names: frozenset[str]
    num_warps: object
    line: int


@dataclass(frozen=True)
class Kernel:
    """A function with ``@triton.jit``."""

    node: ast.FunctionDef  # its definition
    parameters: tuple[Parameter, ...]  # in order
    tuned: bool
    configs: tuple[Tuning, ...] | None  # its configurations; None if the code computes them
    pruned: bool  # whether a function chooses among the configurations
    filled: frozenset[str] | None  # parameters that heuristics set; None if unknown

    @property
    def name(self) -> str:
        return self.node.name


class Candidate:
    """A parsed module.

    Attributes:
        open_names: whether the module may have names that no statement of it binds.
        plain_globals: whether it uses Triton's switch that lets kernels read any global.
    """

    def __init__(self, source: str) -> None:
        """Parse the module and read its own statements; nothing is run.

        Raises:
            SyntaxError, ValueError, RecursionError: the source is not valid Python.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.tree = tree = parse(source)
            self._global_reads = _reads_by_scope(symtable.symtable(source, "candidate.py", "exec"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and _is_too_long(node.value):
                node.value = None
        self.open_names = any(_may_bind_any(node) for node in ast.walk(tree))
        self.plain_globals = "allow_non_constexpr_globals" in source.lower()
        self.paths = dict(imports(ast.walk(tree)))
        self.bindings: dict[str, list[ast.AST]] = {}
        for node in statements(tree.body):
            for name in bound_names(node):
                self.bindings.setdefault(name, []).append(node)
        once = {name: nodes[0] for name, nodes in self.bindings.items() if len(nodes) == 1}
        self.functions = {name: node for name, node in once.items() if isinstance(node, ast.FunctionDef)}
        self.classes = {name: node for name, node in once.items() if isinstance(node, ast.ClassDef)}

    @cached_property
    def kernels(self) -> dict[str, Kernel]:
        """Jitted functions of the module, by name."""
        found = {name: self._kernel(node) for name, node in self.functions.items()}
        return {name: kernel for name, kernel in found.items() if kernel is not None}

    def global_reads(self, node: ast.AST) -> frozenset[str]:
        """Return the foreign names that a function, a lambda or the module's own statements read."""
        return self._global_reads.get(_place(node), frozenset())

    def path(self, node: ast.expr) -> str | None:
        """Return the dotted path of an expression through imports, such as ``triton.language.load``."""
        if isinstance(node, ast.Name):
            bound = self.bindings.get(node.id, ())
            imported = all(isinstance(each, ast.Import | ast.ImportFrom) for each in bound)
            return self.paths.get(node.id) if imported else None
        if isinstance(node, ast.Attribute):
            base = self.path(node.value)
            return None if base is None else f"{base}.{node.attr}"
        return None

    def constant(self, node: ast.expr | None, scope: Mapping[str, object] | None = None) -> object:
        """Return the value of literals, module constants and names of ``scope``; None if unknown."""
        try:
            return self._value(node, scope or {}, 0)
        except (ArithmeticError, TypeError, ValueError):
            return None

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
                return None
            case ast.Attribute(value=ast.Name(id="self"), attr=name):
                return scope.get(f"self.{name}")
            case ast.Call(func=ast.Name(id=name), args=[inner], keywords=[]) if name in _CONVERSIONS:
                value = self._value(inner, scope, depth)
                return _CONVERSIONS[name](value) if isinstance(value, bool | int | float) else None
            case ast.Compare(left=left, ops=[way], comparators=[right]):
                return compare(way, self._value(left, scope, depth), self._value(right, scope, depth))
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                known = self._value(test, scope, depth)
                return None if known is None else self._value(then if known else otherwise, scope, depth)
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                value = self._value(inner, scope, depth)
                return -value if isinstance(value, int | float) else None
            case ast.BinOp(left=left, op=operator, right=right):
                return operate(operator, self._value(left, scope, depth), self._value(right, scope, depth))
            case ast.Call(func=called, args=[wrapped], keywords=[]) if self.path(called) in CONSTEXPR:
                return self._value(wrapped, scope, depth)
            case _:
                return None

    def _rebound(self, name: str) -> bool:
        """Return whether a function changes a module's variable."""
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
                configs = self._configs(argument(each, 0, "configs"))
                pruned = any(word.arg in (None, "prune_configs_by") for word in each.keywords)
            elif path in HEURISTICS and isinstance(each, ast.Call):
                names = _literal_keys(argument(each, 0, "values"))
                filled = None if names is None or filled is None else filled.union(names)
            else:  # a decorator with unknown effect
                return None
        if not jitted:
            return None
        return Kernel(node, tuple(self._parameters(node.args)), tuned, configs, pruned, filled)

    def _parameters(self, given: ast.arguments) -> Iterator[Parameter]:
        names = [*given.posonlyargs, *given.args]
        defaults: list[ast.expr | None] = [None] * (len(names) - len(given.defaults))
        defaults += [*given.defaults, *given.kw_defaults]
        for arg, default in zip([*names, *given.kwonlyargs], defaults, strict=True):
            yield Parameter(arg.arg, self.is_constexpr(arg.annotation), default)

    def configs(self, name: str) -> tuple[Tuning, ...]:
        """Return the ``triton.Config`` objects that a module variable lists; empty if it lists others."""
        return self._configs(ast.Name(name, ast.Load())) or ()

    def is_constexpr(self, annotation: ast.expr | None) -> bool:
        """Return whether an annotation is ``tl.constexpr``."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            return "constexpr" in annotation.value
        return annotation is not None and self.path(annotation) in CONSTEXPR

    def _configs(self, node: ast.expr | None) -> tuple[Tuning, ...] | None:
        if isinstance(node, ast.Name) and len(self.bindings.get(node.id, ())) == 1:
            bound = self.bindings[node.id][0]
            if any(
                isinstance(each, ast.Attribute) and ast.unparse(each.value) == node.id
                for each in ast.walk(self.tree)
            ):  # set later
                return None
            node = assigned(bound, node.id) if isinstance(bound, ast.Assign | ast.AnnAssign) else None
        if not isinstance(node, ast.List | ast.Tuple):
            return None
        found = []
        for each in node.elts:
            if not (isinstance(each, ast.Call) and self.path(each.func) in CONFIG):
                return None
            given = argument(each, 0, "kwargs")
            names = _literal_keys(given)
            if names is None or not isinstance(given, ast.Dict):
                return None
            warps = [value for name, value in zip(names, given.values, strict=True) if name == "num_warps"]
            warps += [value for value in [argument(each, 1, "num_warps")] if value is not None]
            num_warps = self.constant(warps[-1]) if warps else None
            found.append(Tuning(frozenset(names), num_warps, each.lineno))
        return tuple(found)


def _literal_keys(node: ast.expr | None) -> list[str] | None:
    if not isinstance(node, ast.Dict):
        return None
    keys = [key.value for key in node.keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
    return keys if len(keys) == len(node.keys) else None


def _reads_by_scope(top: symtable.SymbolTable) -> dict[tuple[str, int], frozenset[str]]:
    """Return the foreign names that each scope reads, by name and line of the scope."""
    found: dict[tuple[str, int], frozenset[str]] = {}
    tables = [top]
    for table in tables:
        place = table.get_name(), 0 if table is top else table.get_lineno()
        names = {
            symbol.get_name()
            for symbol in table.get_symbols()
            if symbol.is_referenced() and (not symbol.is_assigned() if table is top else symbol.is_global())
        }
        found[place] = found.get(place, frozenset()) | names
        tables += table.get_children()
    return found


def _may_bind_any(node: ast.AST) -> bool:
    """Return whether a node imports all names of a module, or uses the module's names as a dict."""
    match node:
        case (
            ast.ImportFrom(names=[ast.alias(name="*")]) | ast.Name(id="exec" | "globals" | "locals" | "vars")
        ):
            return True
        case _:
            return False


def _is_too_long(value: object) -> bool:
    """Return whether a literal has more than 4,096 bits: Python may refuse to convert it to text."""
    return isinstance(value, int) and value.bit_length() > 4096


def _place(node: ast.AST) -> tuple[str, int]:
    """Return the name and line of a scope in a symbol table."""
    if isinstance(node, ast.Module):
        return "top", 0
    return getattr(node, "name", "lambda"), getattr(node, "lineno", 0)
