"""Follows a kernel as Triton's compiler does, with kinds, shapes and element types in place of values."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from adaexplore.preflight.candidate import Candidate, Kernel
from adaexplore.preflight.expressions import Expressions
from adaexplore.preflight.triton_api import TritonApi
from adaexplore.preflight.values import (
    ANY,
    INTEGER,
    Block,
    Const,
    Group,
    Named,
    Value,
    clash,
    is_float,
    joined,
)

_UNROLLED = 12
_MOST_STATEMENTS = 20_000


class KernelLints(Expressions):
    """One pass over a kernel with given arguments; :attr:`found` holds what fails."""

    def __init__(self, candidate: Candidate, api: TritonApi) -> None:
        """Look at kernels of ``candidate`` as compiled by the Triton of ``api``."""
        super().__init__(candidate, api)
        self._loops = 0
        self._returned: list[Value] = []
        self._left = _MOST_STATEMENTS

    def run(self, kernel: Kernel, arguments: Mapping[str, Value]) -> Value:
        """Follow a kernel, or a function that one calls; returns what it returns."""
        saved = self._scope, self._lost, self._loops, self._returned
        self._scope, self._lost, self._loops, self._returned = dict(arguments), set(), 0, []
        self._calls.append(kernel.name)
        try:
            self._body(kernel.node.body)
            if not self._returned:
                return Const(None)
            result = self._returned[0]
            for other in self._returned[1:]:
                result = joined(result, other)
            return result
        finally:
            self._calls.pop()
            self._scope, self._lost, self._loops, self._returned = saved

    def _body(self, body: Sequence[ast.stmt]) -> bool:
        """Follow statements; True when they end in a return."""
        return any(self._statement(statement) for statement in body)

    def _statement(self, node: ast.stmt) -> bool:
        self._left -= 1
        if self._left < 0:  # unrolled loops in unrolled loops: long enough looked at
            return True
        match node:
            case ast.Return(value=value):
                self._returned.append(Const(None) if value is None else self.value(value))
                return True
            case ast.Assign(targets=targets, value=value):
                if len(targets) > 1:
                    self.unsupported(node, "a = b = value", "write two assignments")
                result = self.held(self.value(value))
                for target in targets:
                    self._assign(target, result)
            case ast.AnnAssign(target=ast.Name(id=name), annotation=annotation, value=ast.expr() as value):
                result = self.value(value)
                if self._candidate.is_constexpr(annotation):
                    self._scope[name] = result if not isinstance(result, Block) else Const(result)
                else:
                    self._scope[name] = self.held(result)
            case ast.AugAssign(target=ast.Subscript()):
                self.report("block-store", node)
            case ast.AugAssign(target=ast.Name(id=name) as target, op=operator, value=value):
                left = self.name(ast.copy_location(ast.Name(name, ast.Load()), target))
                self._scope[name] = self.held(self.binary(node, operator, left, self.value(value)))
            case ast.Expr(value=value):
                self.value(value)
            case ast.If():
                return self._if(node)
            case ast.For():
                self._for(node)
            case ast.While():
                self._while(node)
            case ast.FunctionDef():
                self.report("nested-function", node)
                self._scope[node.name] = ANY
            case ast.Pass() | ast.Assert():
                pass
            case _:
                self.syntax(node)
                for inner in ast.walk(node):
                    if isinstance(inner, ast.Name) and isinstance(inner.ctx, ast.Store):
                        self._scope[inner.id] = ANY
        return False

    def _assign(self, target: ast.expr, value: Value) -> None:
        match target:
            case ast.Name(id=name):
                self._scope[name] = value
                self._lost.discard(name)
            case ast.Subscript():
                self.report("block-store", target)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                items = value.items if isinstance(value, Group) and len(value.items) == len(parts) else None
                for number, part in enumerate(parts):
                    self._assign(part, ANY if items is None else items[number])
            case _:
                pass

    def _if(self, node: ast.If) -> bool:
        condition = self.value(node.test)
        if isinstance(condition, Const) and isinstance(condition.value, bool | int | None):
            return self._body(node.body if condition.value else node.orelse)
        if isinstance(condition, Block) and not condition.given:
            if _is_large(condition):
                self.report("tensor-condition", node)
            if self._loops and any(isinstance(each, ast.Return) for each in ast.walk(node)):
                self.unsupported(node, "return inside a loop", "mask what must not happen")
            return self._run_time_if(node)
        before, lost = dict(self._scope), set(self._lost)
        with self.unsure():
            self._body(node.body)
            then, then_lost = self._scope, self._lost
            self._scope, self._lost = dict(before), set(lost)
            self._body(node.orelse)
        names = set(then) | set(self._scope)
        self._scope = {
            name: joined(then[name], self._scope[name]) if name in then and name in self._scope else ANY
            for name in names
        }
        self._lost |= then_lost
        return False

    def _run_time_if(self, node: ast.If) -> bool:
        """Both branches are compiled; what they change must keep its type."""
        before = dict(self._scope)
        ended = self._body(node.body)
        then = self._scope
        self._scope = dict(before)
        ended_too = self._body(node.orelse)
        otherwise = self._scope
        after: dict[str, Value] = {}
        for name in before:
            one, other = then.get(name, ANY), otherwise.get(name, ANY)
            old = before[name]
            for new in (one, other):
                if isinstance(old, Block) and isinstance(new, Block) and not old.given and clash(old, new):
                    self.report("branch-type", node, name=name, left=old, right=new)
                    break
            after[name] = joined(one, other)
        for name in (then.keys() | otherwise.keys()) - before.keys():
            if name in then and name in otherwise:
                one, other = then[name], otherwise[name]
                if isinstance(one, Block) and isinstance(other, Block) and clash(one, other):
                    self.report("branch-type", node, name=name, left=one, right=other)
                after[name] = joined(one, other)
            else:
                self._lost.add(name)
        self._scope = after
        return ended and ended_too

    def _for(self, node: ast.For) -> None:
        if not isinstance(node.iter, ast.Call):
            self.unsupported(node, "a loop over anything but a range", "use range or tl.static_range")
            return
        kind = self.value(node.iter.func)
        bounds = [self.value(arg) for arg in node.iter.args if not isinstance(arg, ast.Starred)]
        bounds += [self.value(word.value) for word in node.iter.keywords]
        target = node.target.id if isinstance(node.target, ast.Name) else None
        if target is None:
            self.unsupported(node, "a loop over several variables", "use range and one variable")
            return
        if isinstance(kind, Named) and kind.path.endswith(".static_range"):
            self._unrolled(node, target, bounds)
            return
        known = isinstance(kind, Named) and kind.path in ("builtins.range", "triton.language.range")
        if isinstance(kind, Named) and not known:
            self.unsupported(node, "a loop over anything but a range", "use range or tl.static_range")
        for bound in bounds[:3]:
            if isinstance(bound, Block) and not bound.given and (is_float(bound.dtype) or bound.shape):
                self.report("loop-bounds", node, what=bound)
            elif isinstance(bound, Const) and isinstance(bound.value, float):
                self.report("loop-bounds", node, what="a float")
        self._scope[target] = Block((), "int32" if all(_is_small(each) for each in bounds) else INTEGER)
        self._looped(node.body, target)

    def _while(self, node: ast.While) -> None:
        condition = self.value(node.test)
        if isinstance(condition, Const) and condition.known:
            self.unsupported(node, "a while loop on a constant", "use range or tl.static_range")
        self._looped(node.body, None)

    def _looped(self, body: Sequence[ast.stmt], target: str | None) -> None:
        """A loop at run time: compiled once, what it changes must keep its type."""
        before = dict(self._scope)
        self._loops += 1
        self._body(body)
        self._loops -= 1
        after = self._scope
        for name, old in before.items():
            new = after.get(name, ANY)
            if name != target and isinstance(new, Block) and isinstance(old, Block):
                if not old.given and clash(old, new):
                    self.report("loop-type", body[0], name=name, left=old, right=new)
                if old.dtype is None or old.given:
                    before[name] = joined(old, new)
        self._lost |= after.keys() - before.keys()
        self._scope = before

    def _unrolled(self, node: ast.For, target: str, bounds: Sequence[Value]) -> None:
        """A loop at compile time."""
        numbers = [bound.value for bound in bounds if isinstance(bound, Const) and type(bound.value) is int]
        if any(isinstance(bound, Block) and not bound.given for bound in bounds):
            self.report("static-loop", node)
        passes = (
            range(*numbers[:3]) if numbers and len(numbers) == len(bounds) and 0 not in numbers[2:] else None
        )
        if passes is not None and len(passes) <= _UNROLLED:
            for number in passes:
                self._scope[target] = Const(number)
                self._body(node.body)
            return
        with self.unsure():
            before = dict(self._scope)
            self._scope[target] = Const()
            self._body(node.body)
        for name, value in before.items():
            self._scope[name] = joined(value, self._scope.get(name, ANY))
        for name in self._scope.keys() - before.keys():
            self._scope[name] = ANY


def _is_large(block: Block) -> bool:
    return (
        bool(block.shape)
        and all(length is not None for length in block.shape or ())
        and set(block.shape or ()) != {1}
    )


def _is_small(value: Value) -> bool:
    """Whether a loop bound is a number or a 32-bit scalar."""
    return (isinstance(value, Const) and type(value.value) is int and abs(value.value) < 2**31) or (
        isinstance(value, Block) and value.dtype == "int32"
    )
