"""Lints on kernels: syntax, names and arguments that Triton refuses for all values."""

import ast
import re
from collections.abc import Iterator, Mapping
from typing import TypeGuard

from adaexplore.core.environment import TritonFacts
from adaexplore.preflight.bindings import argument, is_open, unfit
from adaexplore.preflight.candidate import Candidate
from adaexplore.preflight.findings import Finding, finding, lint_table
from adaexplore.preflight.scopes import Where, assigned_values, parameters
from adaexplore.preflight.triton_names import parameters_of

_NO_COMPREHENSION = ("a comprehension", "use separate variables, or one block with one more dimension")
_NO_IMPORT = ("an import", "import at module level")
_SYNTAX: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Break: ("break", "compute the number of passes first, or mask what must not happen"),
    ast.Continue: ("continue", "put the rest of the loop under an if, or mask it"),
    ast.Try: ("try", "check before the launch"),
    ast.Raise: ("raise", "use tl.device_assert, or check before the launch"),
    ast.Lambda: ("a lambda", "write the expression out, or a module-level function with @triton.jit"),
    ast.GeneratorExp: _NO_COMPREHENSION,
    ast.Dict: ("a dict", "use separate variables"),
    ast.Set: ("a set", "use separate variables"),
    ast.NamedExpr: ("':='", "assign in a statement of its own"),
    ast.Global: ("global", "pass the value as a parameter"),
    ast.Import: _NO_IMPORT,
    ast.ImportFrom: _NO_IMPORT,
}
"""Constructs that kernels cannot have, and their replacements."""
_BUILTINS = frozenset(
    ["float", "getattr", "hasattr", "int", "isinstance", "len", "list", "max", "min", "print", "range"]
)
"""Python's own names that kernels may use."""
_LANGUAGE = ("triton.language", "triton.language.core")
_TYPE = re.compile(r"b?float\d\w*|u?int\d+")
_DEPTH = 4
_EXTREMES = ("max", "min")
_MAKE_TENSORS = ("arange", "exp", "full", "load", "maximum", "minimum", "sum", "where", "zeros", *_EXTREMES)


class KernelLints:
    """Lints on a kernel; they check one node at a time."""

    def __init__(self, candidate: Candidate, triton: TritonFacts | None) -> None:
        """Check kernels of ``candidate``; without ``triton``, only with lints that hold for every version."""
        self._candidate = candidate
        self._triton = triton or TritonFacts()

    def check(self, node: ast.AST, where: Where) -> Iterator[Finding]:
        what = self._unsupported(node)
        if what is not None:
            line = getattr(node, "lineno", 1)
            yield finding("unsupported-syntax", line, what=what[0], instead=what[1])
        match node:
            case ast.FunctionDef():
                yield finding("nested-function", node.lineno)
            case ast.Subscript(ctx=ast.Store()):
                yield finding("block-store", node.lineno)
            case ast.Subscript() if self._takes_elements(node, where):
                yield finding("block-index", node.lineno)
            case ast.Name(ctx=ast.Load()) if node.id in self._candidate.global_reads(where.node):
                yield from self._global(node)
            case ast.Call() if not is_open(node):
                yield from self._call(node, where)

    def _unsupported(self, node: ast.AST) -> tuple[str, str] | None:
        match node:
            case ast.Compare(ops=[_, _, *_]):
                return "a chained comparison", "combine two with &"
            case ast.Compare(ops=[ast.In() | ast.NotIn()]):
                return "in", "compare with =="
            case ast.Assign(targets=[_, _, *_]):
                return "a = b = value", "write two assignments"
            case ast.For(iter=iterated) if not isinstance(iterated, ast.Call):
                return "a loop over anything but a range", "use range or tl.static_range"
            case ast.For(target=target) if not isinstance(target, ast.Name):
                return "a loop over several variables", "use range and one variable"
            case ast.While(test=ast.Constant()):
                return "a while loop on a constant", "use range or tl.static_range"
            case ast.ListComp(generators=[ast.comprehension(iter=ast.Call(func=ast.Name(id="range")))]):
                return _NO_COMPREHENSION
            case _:
                return _SYNTAX.get(type(node))

    def _global(self, node: ast.Name) -> Iterator[Finding]:
        name, candidate = node.id, self._candidate
        match candidate.bindings.get(name):
            case None if name not in _BUILTINS and not candidate.open_names:
                yield finding("undefined-in-kernel", node.lineno, name=name)
            case [ast.FunctionDef(decorator_list=[])]:
                yield finding("plain-function", node.lineno, name=name)
            case [ast.Assign(targets=[ast.Name()]) | ast.AnnAssign() as bound] if not candidate.plain_globals:
                value = candidate.constant(bound.value)
                if isinstance(value, bool | int | float | str) and _is_plain(bound.value):
                    yield finding("non-constexpr-global", node.lineno, name=name, value=value)

    def _takes_elements(self, node: ast.Subscript, where: Where) -> bool:
        """Return whether an index surely does not index a tuple, and does not consist of ``:`` and None."""
        match node.slice:
            case ast.Tuple(elts=parts):
                return any(_selects(part, where) for part in parts)
            case ast.Name() | ast.Constant(value=int()) as index:
                return _selects(index, where) and self._is_tensor(node.value, where)
            case _:
                return False

    def _is_tensor(self, node: ast.expr, where: Where, seen: frozenset[str] = frozenset()) -> bool:
        """Return whether an expression, or every value of a variable, is surely a tensor."""
        match node:
            case ast.Name(id=name) if isinstance(where.node, ast.FunctionDef) and len(seen) < _DEPTH:
                values = assigned_values(where.node, name)
                return name in seen or (
                    bool(values) and all(self._is_tensor(each, where, seen | {name}) for each in values)
                )
            case ast.BinOp(left=left, right=right):
                return self._is_tensor(left, where, seen) or self._is_tensor(right, where, seen)
            case ast.Call(func=func):
                module, _, name = (self._candidate.path(func) or "").rpartition(".")
                several = name in _EXTREMES and (
                    is_open(node) or argument(node, 2, "return_indices") is not None
                )
                return module in _LANGUAGE and name in _MAKE_TENSORS and not several
            case _:
                return False

    def _call(self, node: ast.Call, where: Where) -> Iterator[Finding]:
        words = [word.arg or "" for word in node.keywords]
        if isinstance(node.func, ast.Name) and node.func.id in self._candidate.kernels:
            what = unfit(self._candidate.kernels[node.func.id].node.args, len(node.args), words)
            if what is not None:
                yield finding("call-arguments", node.lineno, name=node.func.id, what=what)
            return
        module, _, name = (self._candidate.path(node.func) or "").rpartition(".")
        if module not in _LANGUAGE:
            return
        if _TYPE.fullmatch(name):
            yield finding("called-dtype", node.lineno, name=f"tl.{name}")
        other = any(word.arg == "other" and _is_number(word.value) for word in node.keywords)
        if name == "load" and other and "mask" not in words and len(node.args) < 2:
            yield finding("load-mask", node.lineno)
        if name in _EXTREMES and len(node.args) == 2:
            axis = node.args[1]
            if self._is_tensor(axis, where) or (_is_number(axis) and isinstance(axis.value, float)):
                what = f"takes one block and an axis; for two blocks use tl.{name}imum"
                yield finding("function-arguments", node.lineno, function=name, what=what)
        given = parameters_of(name, self._triton)
        if given is None:
            return
        known = {arg.arg for arg in (*given.args, *given.kwonlyargs)}
        for word in words if given.kwarg is None else ():
            if word not in known:
                instead = f"; {lint_table().keywords.get(name, {}).get(word, 'leave it out')}"
                yield finding("unknown-keyword", node.lineno, function=name, name=word, instead=instead)
                return
        what = unfit(given, len(node.args), words)
        if what is not None:
            yield finding("function-arguments", node.lineno, function=name, what=what)


def _is_plain(node: ast.expr | None) -> bool:
    """Return whether a value has only literals, so that it cannot be a ``tl.constexpr``."""
    return node is not None and not any(isinstance(each, ast.Name | ast.Call) for each in ast.walk(node))


def _is_number(node: ast.expr) -> TypeGuard[ast.Constant]:
    return isinstance(node, ast.Constant) and isinstance(node.value, int | float)


def _selects(index: ast.expr, where: Where) -> bool:
    """Return whether an index surely selects elements: neither ``:`` nor a constant that may be None."""
    match index:
        case ast.Slice(lower=None, upper=None, step=None) | ast.Constant(value=None):
            return False
        case ast.Name(id=name):
            given = parameters(where.node) if isinstance(where.node, ast.FunctionDef) else ()
            return name in where.constants and name not in given
        case _:
            return True
