"""Walks what constructing and calling ModelNew runs, as far as that is sure without running it."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from adaexplore.preflight.candidate import Candidate, Function
from adaexplore.preflight.constants import UNKNOWN
from adaexplore.preflight.findings import Finding
from adaexplore.preflight.scopes import MODEL, Scopes

_PLAIN = 3


@dataclass(frozen=True)
class Where:
    """The function that a node belongs to, or the module for its own statements; and its class."""

    node: Function | ast.Module
    owner: ast.ClassDef | None


Check = Callable[[ast.AST, Where], Iterable[Finding]]


class Walk:
    """Collects what ``check`` finds in code that surely runs.

    Of two branches whose condition is open, findings count when both have some: one of them runs. A branch
    that only leaves the function early (an empty input, a missing GPU) is taken not to be the one. What an
    exception handler would catch does not count.
    """

    def __init__(self, candidate: Candidate, scopes: Scopes, check: Check) -> None:
        """Walk ``candidate``; ``check`` is asked about each node."""
        self._candidate = candidate
        self._scopes = scopes
        self._check = check
        self._known: dict[ast.AST, list[Finding]] = {}
        self._trains = not any(
            isinstance(node, ast.Attribute) and node.attr in ("eval", "train")
            for node in ast.walk(candidate.tree)
        )

    def findings(self) -> list[Finding]:
        """Those of the module's own statements, and of ModelNew's constructor and forward."""
        found = self._body(self._candidate.tree.body, Where(self._candidate.tree, None))
        model = self._candidate.classes.get(MODEL)
        if model is not None:
            found += self._of_class(model)
        return found

    def _of_class(self, node: ast.ClassDef) -> list[Finding]:
        return self._method(node, "__init__") + self._method(node, "forward")

    def _method(self, owner: ast.ClassDef, name: str) -> list[Finding]:
        for each in owner.body:
            if isinstance(each, ast.FunctionDef) and each.name == name:
                return self._function(each, owner)
        for base in owner.bases:
            if isinstance(base, ast.Name) and base.id in self._candidate.classes:
                inherited = self._candidate.classes[base.id]
                if inherited is not owner:
                    return self._method(inherited, name)
        return []

    def _function(self, node: ast.FunctionDef, owner: ast.ClassDef | None) -> list[Finding]:
        if node not in self._known:
            self._known[node] = []  # while it is walked: a recursive call adds nothing
            self._known[node] = self._body(node.body, Where(node, owner))
        return self._known[node]

    def _body(self, body: Sequence[ast.stmt], where: Where) -> list[Finding]:
        found: list[Finding] = []
        for number, statement in enumerate(body):
            if isinstance(statement, ast.If):
                rest = body[number + 1 :]
                found += self._expression(statement.test, where)
                return found + self._branches(statement, rest, where)
            found += self._statement(statement, where)
            if isinstance(statement, ast.Return | ast.Raise | ast.Continue | ast.Break):
                break
        return found

    def _branches(self, node: ast.If, rest: Sequence[ast.stmt], where: Where) -> list[Finding]:
        """What an ``if`` and the statements after it hold."""
        known = self.decided(node.test, where)
        if known is not None:
            taken = node.body if known else node.orelse
            found = self._body(taken, where)
            return found if _ends(taken) else found + self._body(rest, where)
        after = self._body(rest, where)
        then, otherwise = self._body(node.body, where), self._body(node.orelse, where)
        if _ends(node.body) and not _ends(node.orelse):
            otherwise = otherwise + after
            return otherwise if self._is_guard(node.body) else _either(then, otherwise)
        if _ends(node.orelse) and not _ends(node.body):
            then = then + after
            return then if self._is_guard(node.orelse) else _either(then, otherwise)
        if _ends(node.body):
            return _either(then, otherwise)
        return _either(then, otherwise) + after

    def _is_guard(self, body: Sequence[ast.stmt]) -> bool:
        """Whether a branch that leaves does so at once, without work of its own."""
        return isinstance(body[-1], ast.Raise) or (len(body) <= _PLAIN and not self._works(body))

    def _works(self, body: Sequence[ast.stmt]) -> bool:
        names = {node.id for each in body for node in ast.walk(each) if isinstance(node, ast.Name)}
        return bool(names & (set(self._candidate.functions) | set(self._candidate.classes)))

    def _statement(self, node: ast.stmt, where: Where) -> list[Finding]:
        found: list[Finding] = list(self._check(node, where))
        match node:
            case ast.Try(body=tried, handlers=handlers, orelse=otherwise, finalbody=final):
                if not handlers:
                    found += self._body([*tried, *otherwise], where)
                found += self._body(final, where)
            case ast.For(iter=iterated, body=inner):
                found += self._expression(iterated, where) + self._body(inner, where)
            case ast.While(test=test, body=inner):
                found += self._expression(test, where) + self._body(inner, where)
            case ast.With(items=items, body=inner):
                if not any("suppress" in ast.unparse(item.context_expr) for item in items):
                    for item in items:
                        found += self._expression(item.context_expr, where)
                    found += self._body(inner, where)
            case ast.FunctionDef(decorator_list=decorators):
                for decorator in decorators:
                    found += self._expression(decorator, where)
            case ast.AnnAssign(value=value):  # annotations of variables are not evaluated
                found += [] if value is None else self._expression(value, where)
            case ast.ClassDef() | ast.AsyncFunctionDef() | ast.Match():
                pass
            case _:
                for child in ast.iter_child_nodes(node):
                    found += self._expression(child, where)
        return found

    def _expression(self, node: ast.AST, where: Where) -> list[Finding]:
        found = list(self._check(node, where))
        match node:
            case ast.IfExp(test=test, body=then, orelse=otherwise):
                found += self._expression(test, where)
                known = self.decided(test, where)
                one, other = self._expression(then, where), self._expression(otherwise, where)
                return found + (_either(one, other) if known is None else one if known else other)
            case ast.BoolOp(values=values):
                return found + self._expression(values[0], where)
            case ast.Lambda():
                return found
            case ast.Call():
                found += self._called(node, where)
            case _:
                pass
        for child in ast.iter_child_nodes(node):
            found += self._expression(child, where)
        return found

    def _called(self, node: ast.Call, where: Where) -> list[Finding]:
        """What a call of the candidate's own code holds."""
        candidate = self._candidate
        match node.func:
            case ast.Name(id=name) if name in candidate.functions and name not in candidate.kernels:
                return self._function(candidate.functions[name], None)
            case ast.Name(id=name) if name in candidate.classes and name != MODEL:
                return self._of_class(candidate.classes[name])
            case ast.Attribute(value=ast.Name(id="self"), attr=name) if where.owner is not None:
                return self._method(where.owner, name)
            case ast.Attribute(value=ast.Name(id=name), attr="apply") if name in candidate.classes:
                return self._method(candidate.classes[name], "forward")
            case ast.Attribute(value=ast.Name(id=name), attr=attr) if name in candidate.classes:
                return self._method(candidate.classes[name], attr)
            case _:
                return []

    def decided(self, test: ast.expr, where: Where) -> bool | None:
        """What a condition is on a judge: tensors are on a CUDA device, the model is as constructed.

        Returns:
            None if that does not decide it.
        """
        match test:
            case ast.Constant(value=value):
                return bool(value)
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                known = self.decided(inner, where)
                return None if known is None else not known
            case ast.BoolOp(op=operator, values=values):
                settles = isinstance(operator, ast.Or)
                told = [self.decided(each, where) for each in values]
                return settles if settles in told else None if None in told else not settles
            case ast.Attribute(attr="is_cuda"):
                return True
            case ast.Attribute(attr="training") if self._trains:
                return True
            case ast.Call(func=ast.Attribute(attr="is_available"), args=[]) if "cuda" in ast.unparse(test):
                return True
            case ast.Compare(left=ast.Attribute(attr="type"), ops=[ast.Eq() | ast.NotEq() as way]):
                compared = test.comparators[0]
                if isinstance(compared, ast.Constant) and compared.value in ("cuda", "cpu"):
                    return (compared.value == "cuda") == isinstance(way, ast.Eq)
                return self._constant(test, where)
            case _:
                return self._constant(test, where)

    def _constant(self, test: ast.expr, where: Where) -> bool | None:
        value = self._candidate.constant(test, self._scopes.of(where.node, where.owner))
        return None if value is UNKNOWN else bool(value)


def _either(one: list[Finding], other: list[Finding]) -> list[Finding]:
    return one + other if one and other else []


def _ends(body: Sequence[ast.stmt]) -> bool:
    """Whether a branch leaves what it is in."""
    return bool(body) and (
        isinstance(body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
        or (isinstance(body[-1], ast.If) and _ends(body[-1].body) and _ends(body[-1].orelse))
    )
