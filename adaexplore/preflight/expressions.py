"""Expressions inside a kernel: names, attributes, calls, indices."""

from __future__ import annotations

import ast
from abc import abstractmethod
from collections.abc import Mapping, Sequence

from adaexplore.preflight.candidate import CONSTEXPR, Candidate, Kernel
from adaexplore.preflight.language import LanguageCalls
from adaexplore.preflight.trace import SYNTAX
from adaexplore.preflight.triton_api import TritonApi
from adaexplore.preflight.values import (
    ANY,
    TYPE_NAMES,
    Block,
    Const,
    DType,
    Group,
    Jitted,
    Method,
    Named,
    Value,
    clash,
    joined,
    of_number,
)

_DEPTH = 6


class Expressions(LanguageCalls):
    """Values of expressions in the kernel that is followed."""

    def __init__(self, candidate: Candidate, api: TritonApi) -> None:
        """Look at kernels of ``candidate`` as compiled by the Triton of ``api``."""
        super().__init__(api)
        self._candidate = candidate
        self._scope: dict[str, Value] = {}
        self._lost: set[str] = set()
        self._calls: list[str] = []

    @abstractmethod
    def run(self, kernel: Kernel, arguments: Mapping[str, Value]) -> Value:
        """Follow a kernel, or a function that one calls; returns what it returns."""

    def value(self, node: ast.expr) -> Value:
        """What the compiler would know of an expression."""
        match node:
            case ast.Constant(value=value):
                return Const(value)
            case ast.Name():
                return self.name(node)
            case ast.Attribute():
                return self._attribute(node)
            case ast.Call():
                return self._call(node)
            case ast.BinOp(left=left, op=operator, right=right):
                return self.binary(node, operator, self.value(left), self.value(right))
            case ast.UnaryOp(op=operator, operand=operand):
                return self.unary(operator, self.value(operand))
            case ast.Compare():
                return self.compare(node, *[self.value(each) for each in (node.left, *node.comparators)][:2])
            case ast.BoolOp(values=values):
                return self.logical(node, [self.value(each) for each in values])
            case ast.Subscript():
                return self._subscript(node)
            case ast.IfExp():
                return self._choice(node)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                return Group(tuple(self.value(part) for part in parts))
            case ast.ListComp(generators=[one]) if "ListComp" in self.api.nodes:
                iterated = one.iter
                if isinstance(iterated, ast.Call) and ast.unparse(iterated.func) in (
                    "range",
                    "tl.static_range",
                ):
                    self.unsupported(node, *SYNTAX["ListComp"])
                return ANY
            case ast.JoinedStr() | ast.FormattedValue() | ast.Slice():
                return ANY
            case _:
                self.syntax(node)
                return ANY

    def name(self, node: ast.Name) -> Value:
        """What a name stands for: a variable of the kernel, one of the module, or Python's own."""
        name = node.id
        if name in self._scope:
            return self._scope[name]
        candidate = self._candidate
        if name in self._lost:
            self.report("lost-after-block", node, name=name)
            return ANY
        if name in candidate.kernels:
            return Jitted(name)
        path = candidate.path(node)
        if path is not None:
            return self._imported(path)
        if name in candidate.bindings:
            return self._global(node)
        if name in self.api.builtins:
            return Named(f"builtins.{name}")
        if not candidate.star_import:
            self.report("undefined-in-kernel", node, name=name)
        return ANY

    def _global(self, node: ast.Name) -> Value:
        """A variable or function of the module."""
        bound = self._candidate.bindings[node.id]
        if len(bound) != 1:
            return ANY
        match bound[0]:
            case ast.FunctionDef(decorator_list=[]):
                self.report("plain-function", node, name=node.id)
                return ANY
            case ast.Assign(targets=[ast.Name()], value=value) | ast.AnnAssign(value=ast.expr() as value):
                if isinstance(value, ast.Call) and self._candidate.path(value.func) in CONSTEXPR:
                    return Const(self._candidate.constant(value))
                path = self._candidate.path(value)
                if path is not None:
                    return self._imported(path)
                constant = self._candidate.constant(value)
                if isinstance(constant, bool | int | float | str):
                    self.report("non-constexpr-global", node, name=node.id, value=constant)
                return ANY
            case _:
                return ANY

    def _imported(self, path: str) -> Value:
        module, _, name = path.rpartition(".")
        if module in ("triton.language", "triton.language.core") and name in TYPE_NAMES:
            return DType(name)
        return Named(path)

    def _attribute(self, node: ast.Attribute) -> Value:
        base = self.value(node.value)
        name = node.attr
        if isinstance(base, Named):
            path = f"{base.path}.{name}"
            if self.api.lacks(path):
                self.report_missing(path, node)
                return ANY
            return self._imported(path)
        if not isinstance(base, Block):
            return ANY
        if name == "T":
            return Block(None if base.shape is None else base.shape[::-1], base.dtype)
        if name == "shape":
            return ANY if base.shape is None else Group(tuple(_length(each) for each in base.shape))
        if name == "dtype":
            full = next((full for full, short in TYPE_NAMES.items() if short == base.dtype), None)
            return ANY if full is None else DType(full)
        if name in ("type", "numel", "handle"):
            return ANY
        if name not in self.api.tensor:
            if not base.given:
                self.report_tensor_attribute(name, node)
            return ANY
        return Method(base, name)

    def _call(self, node: ast.Call) -> Value:
        called = self.value(node.func)
        starred = any(isinstance(arg, ast.Starred) for arg in node.args)
        args = [self.value(arg) for arg in node.args if not isinstance(arg, ast.Starred)]
        words = {word.arg: self.value(word.value) for word in node.keywords if word.arg is not None}
        if starred or len(words) < len(node.keywords):
            return ANY
        match called:
            case DType(name=name):
                if not self.api.callable_types:
                    self.report("called-dtype", node, name=f"tl.{name}")
                return ANY
            case Named(path=path):
                return self.named_call(node, path, args, words)
            case Method(owner=owner, name=name):
                return self.language_call(node, name, [owner, *args], words, method=True)
            case Jitted(name=name):
                return self._own(node, self._candidate.kernels[name], args, words)
            case _:
                return ANY

    def _own(
        self, node: ast.Call, kernel: Kernel, args: Sequence[Value], words: Mapping[str, Value]
    ) -> Value:
        """A call of one of the candidate's own jitted functions."""
        names = [parameter.name for parameter in kernel.parameters]
        problem = None
        if len(args) > len(names):
            problem = f"takes {len(names)} arguments and gets {len(args)}"
        bound = dict(zip(names, args, strict=False))
        for word in words:
            if word not in names:
                problem = f"has no parameter {word}"
        bound |= words
        missing = [each.name for each in kernel.parameters if each.name not in bound and each.default is None]
        if missing:
            problem = f"is called without {', '.join(missing)}"
        if problem is not None:
            self.report("call-arguments", node, name=kernel.name, what=problem)
            return ANY
        if len(self._calls) >= _DEPTH or kernel.name in self._calls or kernel.node.args.vararg:
            return ANY
        for parameter in kernel.parameters:
            if parameter.name not in bound:
                bound[parameter.name] = Const(self._candidate.constant(parameter.default))
            elif parameter.constexpr and isinstance(bound[parameter.name], Block):
                bound[parameter.name] = ANY
        return self.run(kernel, bound)

    def _choice(self, node: ast.IfExp) -> Value:
        condition = self.value(node.test)
        if isinstance(condition, Const) and isinstance(condition.value, bool | int | None):
            return self.value(node.body if condition.value else node.orelse)
        if isinstance(condition, Block) and not condition.given:
            one, other = self.held(self.value(node.body)), self.held(self.value(node.orelse))
            if isinstance(one, Block) and isinstance(other, Block) and clash(one, other):
                self.report("branch-type", node, name="the expression", left=one, right=other)
            return joined(one, other)
        with self.unsure():
            return joined(self.value(node.body), self.value(node.orelse))

    def _subscript(self, node: ast.Subscript) -> Value:
        base = self.value(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        indices: list[Value | None] = []
        for part in parts:
            if isinstance(part, ast.Slice):
                whole = part.lower is None and part.upper is None and part.step is None
                indices.append(None if whole else Block((), None))
            else:
                indices.append(self.value(part))
        if isinstance(base, Group):
            index = indices[0] if len(indices) == 1 else None
            if (
                isinstance(index, Const)
                and isinstance(index.value, int)
                and -len(base.items) <= index.value < len(base.items)
            ):
                return base.items[index.value]
            return ANY
        if not isinstance(base, Block):
            return ANY
        return ANY if base.given else self._expanded(node, base, indices)

    def _expanded(self, node: ast.Subscript, base: Block, indices: Sequence[Value | None]) -> Value:
        """A block with dimensions added by None; any other index is a mistake."""
        for index in indices:
            if isinstance(index, Block | Group | DType) or (
                isinstance(index, Const) and index.known and index.value is not None
            ):
                self.report("block-index", node)
                return ANY
            if index is not None and not (isinstance(index, Const) and index.known):
                return ANY
        if base.shape is None:
            return Block(None, base.dtype)
        shape = list(base.shape)
        for place, index in enumerate(indices):
            if index is not None:
                shape.insert(place, 1)
        return Block(tuple(shape), base.dtype)

    def held(self, value: Value) -> Value:
        """What a variable holds after an assignment: numbers become scalars."""
        if isinstance(value, Const):
            return of_number(value.value) or (value if value.known else ANY)
        if isinstance(value, Group):
            return Group(tuple(self.held(item) for item in value.items))
        return value


def _length(length: int | None) -> Const:
    return Const() if length is None else Const(length)
